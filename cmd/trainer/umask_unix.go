//go:build unix

package main

import "syscall"

// ownerOnly has files that are made until back is called belong to this user alone.
func ownerOnly() (back func()) {
	was := syscall.Umask(0o177)
	return func() { syscall.Umask(was) }
}
