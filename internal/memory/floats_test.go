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

func TestIndex(t *testing.T) {
	whole := make([]float32, 10)
	for _, c := range []struct {
		whole, part []float32
		at          int
		ok          bool
	}{
		{whole, whole, 0, true}, {whole, whole[3:7], 3, true}, {whole, whole[9:], 9, true}, {whole, whole[4:4], 0, false},
		{whole[2:5], whole[4:6], 0, false}, {whole[2:5], whole[1:3], 0, false}, {whole, make([]float32, 2), 0, false}, {nil, whole, 0, false},
	} {
		if at, ok := Index(c.whole, c.part); at != c.at || ok != c.ok {
			t.Errorf("%d of %d values: %d, %v, want %d, %v", len(c.part), len(c.whole), at, ok, c.at, c.ok)
		}
	}
}
