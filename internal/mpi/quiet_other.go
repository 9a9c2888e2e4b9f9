//go:build !((linux || darwin) && (amd64 || arm64)) || static

package mpi

func quietly(f func() error) error { return f() }
