//go:build !linux

package mpi

// ancestor knows of no processes on this system.
func ancestor() (prefix string, fits []Family, ok bool) { return "", nil, false }
