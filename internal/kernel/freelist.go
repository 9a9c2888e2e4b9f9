package kernel

import "sync/atomic"

// freelist lends values to goroutines that have no worker index to pick one by.
// Taking and giving back are a few atomic operations and allocate nothing once
// as many values exist as are in use at the same time.
type freelist[T any] struct {
	slots [64]atomic.Pointer[T]
	make  func() *T
}

// take returns a value that nobody else holds.
func (f *freelist[T]) take() *T {
	for i := range f.slots {
		if f.slots[i].Load() == nil {
			continue
		}
		if v := f.slots[i].Swap(nil); v != nil {
			return v
		}
	}
	return f.make()
}

// give hands v back; beyond the number of slots it is left to the collector.
func (f *freelist[T]) give(v *T) {
	for i := range f.slots {
		if f.slots[i].Load() == nil && f.slots[i].CompareAndSwap(nil, v) {
			return
		}
	}
}
