package freelist

import "sync/atomic"

// List lends values to goroutines that have no worker index to pick one by.
// Taking and giving back are a few atomic operations and allocate nothing once
// as many values exist as are in use at the same time.
type List[T any] struct {
	slots [64]atomic.Pointer[T]
	Make  func() *T
}

// Take returns a value that nobody else holds.
func (f *List[T]) Take() *T {
	for i := range f.slots {
		if f.slots[i].Load() == nil {
			continue
		}
		if v := f.slots[i].Swap(nil); v != nil {
			return v
		}
	}
	return f.Make()
}

// Give hands v back; beyond the number of slots it is left to the collector.
func (f *List[T]) Give(v *T) {
	for i := range f.slots {
		if f.slots[i].Load() == nil && f.slots[i].CompareAndSwap(nil, v) {
			return
		}
	}
}
