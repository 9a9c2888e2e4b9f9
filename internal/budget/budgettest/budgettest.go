// Package budgettest has tests assert that reading an input takes memory and time in proportion to it, whatever is in
// it.
package budgettest

import (
	"runtime"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/allocs"
)

// Bounds of Within. They are far from what reading takes, and further from what a bomb does.
const (
	freeBytes = 8 << 20
	perByte   = 512
	freeTime  = 10 * time.Second // of the processor: fuzzing instruments the code
	perKB     = 20 * time.Millisecond
)

// Within asserts that what happens until the function that it returns is called allocates no more bytes, all
// together, than 8 MiB and 512 for each of size bytes of input, and takes no more than 10 seconds of processor time and
// 20 milliseconds for each thousand:
//
//	defer budgettest.Within(t, len(b))()
func Within(t testing.TB, size int) func() { return WithinBytes(t, size, freeBytes) }

// WithinBytes is Within of what takes more memory for any input, of which free are allowed.
func WithinBytes(t testing.TB, size int, free uint64) func() {
	t.Helper()
	if allocs.Race { // which takes memory and time of its own
		return func() {}
	}
	begin, began := allocated(), processorTime()
	return func() {
		t.Helper()
		took, spent := allocated()-begin, processorTime()-began
		if most := free + perByte*uint64(size); took > most {
			t.Errorf("an input of %d bytes took %d bytes of memory, more than %d", size, took, most)
		}
		if most := freeTime + time.Duration(size/1000)*perKB; spent > most {
			t.Errorf("an input of %d bytes took %v of a processor, more than %v", size, spent, most)
		}
	}
}

// allocated is the number of bytes that were allocated since the process began.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Allocated returns the bytes that f allocates.
func Allocated(f func()) uint64 {
	begin := allocated()
	f()
	return allocated() - begin
}
