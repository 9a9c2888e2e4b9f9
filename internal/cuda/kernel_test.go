//go:build (linux || darwin) && (amd64 || arm64) && !static

package cuda

import (
	"testing"

	"github.com/ebitengine/purego"
)

// The parameters of a launch stay where they are while the stack of the goroutine moves, as here in the driver: it finds those it was
// given, and not what others write to where the stack was.
func TestLaunchWhileTheStackMoves(t *testing.T) {
	want := [3]uint64{1, 2, 3}
	var got [3]uint64
	launch := purego.NewCallback(func(_, _, _, _, _, _, _, _, _ uintptr, params *[3]*uint64, _ uintptr) uintptr {
		written(100)
		done := make(chan byte)
		for range 50 {
			go func() { done <- written(30) }()
		}
		for range 50 {
			<-done
		}
		for i, p := range params {
			got[i] = *p
		}
		return 0
	})
	d := &Device{driver: &driver{library: &library{functions: map[string]uintptr{"cuLaunchKernel": launch}}}}
	k := &Kernel{device: d, handle: 1}
	for range 20 {
		end := make(chan error)
		go func() { end <- k.Launch(Grid{}, want[0], want[1], want[2]) }() // with a stack that is small yet
		if err := <-end; err != nil || got != want {
			t.Fatalf("got %x, %v, want %x", got, err, want)
		}
	}
}

// written writes to so many KiB of the stack.
//
//go:noinline
func written(n int) (sum byte) {
	var room [1024]byte
	for i := range room {
		room[i] = byte(n + 5)
	}
	if n > 0 {
		sum = written(n - 1)
	}
	return sum + room[n]
}
