//go:build !((linux || darwin) && (amd64 || arm64)) || static

package library

// call is never reached: no library can be loaded on this system.
func (l *blas) call(*blasArgs) { panic("kernel: no library calls on this system") }
