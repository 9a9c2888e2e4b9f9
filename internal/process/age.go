// Package process knows how old this process is, and whether it may end.
package process

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// loaded is when the program's packages were ready, for systems that do not tell when
// the process began.
var loaded = time.Now()

// Age returns the time since the process began, to a hundredth of a second.
func Age() time.Duration {
	stat, err1 := os.ReadFile("/proc/self/stat")
	uptime, err2 := os.ReadFile("/proc/uptime")
	if err1 == nil && err2 == nil {
		if d, ok := processAge(string(stat), string(uptime)); ok {
			return d
		}
	}
	return time.Since(loaded)
}

// processAge is the age of a process from its /proc/PID/stat, whose 22nd field is the
// ticks of 1/100 s from the start of the machine to that of the process, and the
// machine's /proc/uptime.
func processAge(stat, uptime string) (time.Duration, bool) {
	// The second field is the program's name in parentheses, which may hold spaces.
	_, rest, ok := cutLast(stat, ")")
	fields, up := strings.Fields(rest), strings.Fields(uptime)
	const starttime = 22 - 3 // the fields after the name begin with the third
	if !ok || len(fields) <= starttime || len(up) == 0 {
		return 0, false
	}
	ticks, err1 := strconv.ParseFloat(fields[starttime], 64)
	now, err2 := strconv.ParseFloat(up[0], 64)
	age := now - ticks/100
	if err1 != nil || err2 != nil || !(age >= 0) {
		return 0, false
	}
	return time.Duration(age * float64(time.Second)), true
}

// cutLast is strings.Cut around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
