//go:build unix

package main

import "syscall"

// noCore has the process and those that it starts leave no core dumps.
func noCore() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_CORE, &l) == nil {
		l.Cur = 0
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &l) // a core dump is no more than a nuisance
	}
}

// ownerOnly has files that are made until back is called belong to this user alone.
func ownerOnly() (back func()) {
	was := syscall.Umask(0o177)
	return func() { syscall.Umask(was) }
}
