//go:build (linux || darwin) && (amd64 || arm64) && !static

package dynlib

import (
	"os"
	"syscall"
)

// crashAtOnce lets a signal that a library causes end the process, without the
// handlers of Go, which would print stacks, and without a core file.
func crashAtOnce() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	signal := Libc("signal")
	if signal == 0 {
		return
	}
	for _, s := range crashes {
		Call(signal, uintptr(s), 0) // SIG_DFL
	}
}

// crashes are the signals that a defect of a program causes.
var crashes = []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGABRT,
	syscall.SIGTRAP, syscall.SIGSYS}

// fromOutside reports whether a process was ended by a signal that says nothing
// about its library, such as the interrupt of the whole program.
func fromOutside(p *os.ProcessState) bool {
	status, ok := p.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	for _, s := range crashes {
		if status.Signal() == s {
			return false
		}
	}
	return true
}
