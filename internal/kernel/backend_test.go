package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/library"
)

func TestBrokenLibraryIsSkippedWithAWarning(t *testing.T) {
	if dynlib.Static {
		t.Skip(dynlib.ErrStatic)
	}
	file := filepath.Join(t.TempDir(), "libdnnl.so.9")
	if err := os.WriteFile(file, []byte("not a library\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GEOALIGN_ONEDNN", file)
	e, err := New(Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if w := e.Warnings(); len(w) == 0 || !strings.Contains(w[0], file) {
		t.Errorf("no warning of %s: %q", file, w)
	}
	for _, b := range library.Probe() {
		if b.Name == library.OneDNN && (len(b.Warnings) == 0 || !strings.Contains(b.Warnings[0], file)) {
			t.Errorf("Probe does not warn of %s: %+v", file, b)
		}
	}
	checkGemm(t, e, gemmCase{m: 5, n: 6, k: 7, alpha: 1})
}

// A library that is not the first and cannot be used is told where products choose among all.
func TestBrokenCandidateIsSkippedWithAWarning(t *testing.T) {
	if dynlib.Static {
		t.Skip(dynlib.ErrStatic)
	}
	file := filepath.Join(t.TempDir(), "libmkl_rt.so.9")
	if err := os.WriteFile(file, []byte("not a library\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GEOALIGN_MKL", file)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dynlib.SetProbing(true)
	defer dynlib.SetProbing(false)
	e, err := New(Options{Threads: 1, Tune: "cache"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	n := 0
	for _, w := range e.Warnings() {
		if strings.Contains(w, file) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d warnings of %s, want 1: %q", n, file, e.Warnings())
	}
}

func TestOptionsErrors(t *testing.T) {
	for _, o := range []Options{{Backend: "cublas"}, {Threads: -1}, {Threads: 5000}} {
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
