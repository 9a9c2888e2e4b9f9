package main

import (
	"os"
	"runtime/debug"
)

// faultsAsSignals has what Go itself ends a program for, a panic of a goroutine, no memory, a stack that is too deep,
// end it by the signal SIGABRT, which a shell shows as 134. Go's own exit code for these is 2, that of a bad
// configuration. There is no core dump, unless GOTRACEBACK=crash asks for one.
func faultsAsSignals() {
	if os.Getenv("GOTRACEBACK") != "crash" {
		noCore()
	}
	debug.SetTraceback("crash")
}
