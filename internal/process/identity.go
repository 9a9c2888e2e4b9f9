package process

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Identity tells processes apart, also those of other machines and containers, and those that had the same number
// before. What a system does not tell is empty.
type Identity struct {
	Host string `json:"host"` // name of the machine or container
	// another one after each start of the machine; containers share that of their machine
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"namespace,omitempty"` // within which process ids are unique
	PID       int    `json:"pid"`
	Started   string `json:"started,omitempty"` // clock ticks from the start of the machine to that of the process
}

// Self returns the identity of this process.
func Self() Identity {
	id := Identity{PID: os.Getpid()}
	id.Host, _ = os.Hostname()
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		id.Boot = strings.TrimSpace(string(b))
	}
	id.Namespace, _ = os.Readlink("/proc/self/ns/pid")
	if b, err := os.ReadFile("/proc/self/stat"); err == nil {
		if f, ok := parseStat(string(b)); ok {
			id.Started = f.started
		}
	}
	return id
}

// SameMachine says whether two processes are of one start of one machine.
func (id Identity) SameMachine(other Identity) bool {
	if id.Boot == "" && other.Boot == "" {
		return id.Host == other.Host
	}
	return id.Boot == other.Boot
}

// Booted returns when this machine started, the zero time where the system does not tell.
func Booted() time.Time {
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}
	}
	first, _, _ := strings.Cut(string(b), " ")
	up, err := time.ParseDuration(first + "s")
	if err != nil {
		return time.Time{}
	}
	return time.Now().Add(-up)
}

// Alive says whether the process of a number in the namespace of this one goes on. With started it must have begun
// then: a number is given again. A process that has ended and is not waited for yet does not go on. In doubt it does.
func Alive(pid int, started string) bool {
	if pid <= 0 {
		return false
	}
	if b, err := os.ReadFile(procStat(pid)); err == nil {
		if f, ok := parseStat(string(b)); ok {
			return f.state != "Z" && f.state != "X" && (started == "" || f.started == started)
		}
	}
	p, err := os.FindProcess(pid) // of another user, where the system hides these, or a system without /proc
	if err != nil {
		return false
	}
	defer p.Release()              //nolint:errcheck // nothing is kept of it
	if runtime.GOOS == "windows" { // which finds those that are there and knows no signals
		return true
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}
