package memory

import (
	"testing"
	"unsafe"
)

func TestFloats(t *testing.T) {
	if Floats(0) != nil {
		t.Error("memory for nothing")
	}
	for _, c := range []struct{ n, align int }{
		{1, line}, {17, line}, {huge - 1, line}, {huge, huge}, {huge + 1, huge}, {5*huge/4 + 3, huge},
	} {
		for range 3 {
			b := Floats(c.n)
			if len(b) != c.n || cap(b) != c.n {
				t.Fatalf("%d floats: length %d, capacity %d", c.n, len(b), cap(b))
			}
			if r := uintptr(unsafe.Pointer(&b[0])) % uintptr(c.align); r != 0 {
				t.Errorf("%d floats begin %d bytes behind a multiple of %d", c.n, r, c.align)
			}
			for i := range b { // all of it is there, and zero
				if b[i] != 0 {
					t.Fatalf("%d floats: %v at %d", c.n, b[i], i)
				}
				b[i] = 1
			}
		}
	}
}
