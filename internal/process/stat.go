package process

import (
	"fmt"
	"strings"
)

// statFields is what /proc/PID/stat says of a process, as far as it is used here.
type statFields struct {
	state   string // one letter: Z has ended and is not waited for yet, X is gone
	started string // ticks of 1/100 s from the start of the machine to that of the process
}

// procStat is the path of that file.
func procStat(pid int) string { return fmt.Sprintf("/proc/%d/stat", pid) }

// parseStat reads the third and the 22nd field of a /proc/PID/stat, see proc_pid_stat(5).
func parseStat(stat string) (f statFields, ok bool) {
	i := strings.LastIndex(stat, ")") // the second field is the program's name in parentheses, which may hold spaces
	if i < 0 {
		return f, false
	}
	fields := strings.Fields(stat[i+1:])
	const started = 22 - 3 // the fields after the name begin with the third
	if len(fields) <= started {
		return f, false
	}
	return statFields{fields[0], fields[started]}, true
}
