//go:build !linux

package mpi

import (
	"runtime"
	"time"
)

// affinity: processes are not bound to processors.
func affinity() string { return "" }

func yield() { runtime.Gosched() }

func sleep(d time.Duration) { time.Sleep(d) }

func precise() {}

func readsOthers() bool { return true }
