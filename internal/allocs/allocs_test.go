package allocs_test

import (
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
)

var kept []byte

// TestPerRun counts what every run allocates, and not what one of many does.
func TestPerRun(t *testing.T) {
	if allocs.Race {
		t.Skip("nothing is counted under the race detector")
	}
	if n := allocs.PerRun(5, func() { kept = make([]byte, 100) }); n != 1 {
		t.Errorf("one allocation a run: got %v", n)
	}
	run := 0
	n := allocs.PerRun(5, func() {
		if run++; run == 4 {
			for range 20 {
				kept = make([]byte, 100)
			}
		}
	})
	if n != 0 {
		t.Errorf("a burst in one run of many: got %v", n)
	}
}
