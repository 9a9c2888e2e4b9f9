//go:build !amd64 && !arm64

package kernel

import "runtime"

// pause gives other goroutines a turn in a spin loop.
func pause() { runtime.Gosched() }
