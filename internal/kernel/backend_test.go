package kernel

import (
	"strings"
	"testing"
)

func TestOptionsErrors(t *testing.T) {
	for _, o := range []Options{{Backend: "cublas"}, {Backend: "onednn"}, {Threads: -1}, {Threads: 5000}} {
		if e, err := New(o); err == nil {
			e.Close()
			t.Errorf("New(%+v): no error", o)
		}
	}
}

func TestShortSlicesPanic(t *testing.T) {
	e := newTestEngine(t, 1)
	x := make([]float32, 12)
	tests := map[string]func(){
		"A":        func() { e.Gemm(false, false, 4, 3, 4, 1, x, 4, x, 3, 0, x, 3) },
		"B":        func() { e.Gemm(false, false, 3, 4, 4, 1, x, 4, x, 4, 0, x, 4) },
		"C":        func() { e.Gemm(false, false, 4, 4, 2, 1, x, 2, x, 4, 0, x, 4) },
		"stride 2": func() { e.Gemm(false, false, 2, 2, 3, 1, x, 2, x, 2, 0, x, 2) },
		"negative": func() { e.Gemm(false, false, -1, 2, 3, 1, x, 3, x, 2, 0, x, 2) },
	}
	for name, f := range tests {
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.Contains(v, name) {
					t.Errorf("%s: got %v", name, v)
				}
			}()
			f()
		}()
	}
}
