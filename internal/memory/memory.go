// Package memory says how much memory the machine has and how much of it the process
// took. It reads /proc and the limits of control groups; where these do not exist the
// answers are 0, which means not known. And it gives out memory for large arrays.
package memory

import (
	"bufio"
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Total returns the bytes that the process may use at most: the memory of the machine
// or the limit of its control group, whichever is less.
func Total() int64 {
	return total(meminfo(read("/proc/meminfo"), "MemTotal"), groupLimit(read("/proc/self/cgroup"), read))
}

// Peak returns the largest resident size of the process since its start or the last
// ResetPeak.
func Peak() int64 { return meminfo(read("/proc/self/status"), "VmHWM") }

// Resident returns the resident size of the process.
func Resident() int64 { return meminfo(read("/proc/self/status"), "VmRSS") }

// ResetPeak starts Peak anew from the present size. It reports whether the system
// can do that.
func ResetPeak() bool {
	return os.WriteFile("/proc/self/clear_refs", []byte("5\n"), 0o200) == nil
}

// MB is a number of bytes in MB of 1,048,576.
func MB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// read returns the content of a file, nothing if it cannot be read.
func read(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

// meminfo returns a value of lines such as "VmHWM:   1234 kB" in bytes, 0 without it.
func meminfo(text []byte, key string) int64 {
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		name, value, ok := strings.Cut(s.Text(), ":")
		if !ok || name != key {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return n << 10
	}
	return 0
}

// total is the smaller of two sizes that may be unknown.
func total(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// groupLimit returns the least memory limit of the control groups (version 2 or 1)
// that the text of /proc/self/cgroup names, and of those above them; 0 without one.
func groupLimit(groups []byte, read func(path string) []byte) int64 {
	var least int64
	for s := bufio.NewScanner(bytes.NewReader(groups)); s.Scan(); {
		parts := strings.SplitN(s.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "/memory.max"
		switch controllers := strings.Split(parts[1], ","); {
		case parts[1] == "":
		case slices.Contains(controllers, "memory"):
			root, file = "/sys/fs/cgroup/memory", "/memory.limit_in_bytes"
		default:
			continue
		}
		for path := strings.TrimSuffix(parts[2], "/"); ; path = path[:strings.LastIndexByte(path, '/')] {
			n, err := strconv.ParseInt(strings.TrimSpace(string(read(root+path+file))), 10, 64)
			// Version 1 writes a huge number for no limit, version 2 the word max.
			if err == nil && n > 0 && n < 1<<60 {
				least = total(least, n)
			}
			if path == "" || !strings.Contains(path, "/") {
				break
			}
		}
	}
	return least
}
