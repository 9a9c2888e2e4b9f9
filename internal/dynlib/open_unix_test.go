//go:build (linux || darwin) && (amd64 || arm64) && !static

package dynlib

import (
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestMissingLibraryKeepsItsReason asks for libraries that are not there from many goroutines
// that the scheduler moves between threads: every error says why.
func TestMissingLibraryKeepsItsReason(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	stop := make(chan struct{})
	var noise, all sync.WaitGroup
	for range 16 {
		noise.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		})
	}
	for range 8 {
		all.Go(func() {
			for range 200 {
				if _, err := Open("libgeoalign-is-not-there.so"); err == nil || !strings.Contains(err.Error(), "libgeoalign-is-not-there") {
					t.Errorf("got error %q, which does not name the file", err)
					return
				}
			}
		})
	}
	all.Wait()
	close(stop)
	noise.Wait()
}
