package budgettest

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
)

// recorder is a test that keeps what it is told.
type recorder struct {
	testing.TB
	told string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, _ ...any) {
	r.told += format
}

var sink []byte

func TestWithin(t *testing.T) {
	if allocs.Race {
		t.Skip("nothing is counted under the race detector")
	}
	for _, c := range []struct {
		input, takes int
		wrong        bool
	}{{0, 1 << 20, false}, {100, 9 << 20, true}, {1 << 20, 300 << 20, false}} {
		r := &recorder{}
		func() {
			defer Within(r, c.input)()
			for range c.takes >> 20 {
				sink = make([]byte, 1<<20)
			}
		}()
		if strings.Contains(r.told, "of memory") != c.wrong {
			t.Errorf("an input of %d bytes that takes %d: %q", c.input, c.takes, r.told)
		}
	}
}
