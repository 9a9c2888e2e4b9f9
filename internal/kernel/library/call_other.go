//go:build !((linux || darwin) && (amd64 || arm64)) || static

package library

// callSgemm is never reached: no library can be loaded on this system.
func callSgemm(*sgemmArgs) { panic("kernel: no library calls on this system") }

// run is never reached either.
func (c *callChain) run() int32 { panic("kernel: no library calls on this system") }
