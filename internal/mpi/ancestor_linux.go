package mpi

import (
	"fmt"
	"os"
	"strings"
)

// ancestor looks for the program of an MPI among the processes that this one comes from, with
// scripts in between or without, and returns where it is installed and which families it fits.
func ancestor() (prefix string, fits []Family, ok bool) {
	for pid, level := os.Getppid(), 0; pid > 1 && level < 8; level++ {
		if file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
			if prefix, fits, ok := installed(file); ok {
				return prefix, fits, true
			}
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			break
		}
		// The program's name, in parentheses, may hold anything; state and parent follow.
		rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
		pid = 0
		if _, err := fmt.Sscanf(rest, " %s %d", new(string), &pid); err != nil {
			break
		}
	}
	return "", nil, false
}
