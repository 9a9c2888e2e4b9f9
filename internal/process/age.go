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

// processAge is the age of a process from its /proc/PID/stat and the machine's /proc/uptime.
func processAge(stat, uptime string) (time.Duration, bool) {
	f, ok := parseStat(stat)
	up := strings.Fields(uptime)
	if !ok || len(up) == 0 {
		return 0, false
	}
	ticks, err1 := strconv.ParseFloat(f.started, 64)
	now, err2 := strconv.ParseFloat(up[0], 64)
	age := now - ticks/100
	if err1 != nil || err2 != nil || !(age >= 0) {
		return 0, false
	}
	return time.Duration(age * float64(time.Second)), true
}
