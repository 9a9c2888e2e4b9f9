package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBrokenLibraryIsSkippedWithAWarning(t *testing.T) {
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
	for _, b := range Probe() {
		if b.Name == backendOneDNN && (len(b.Warnings) == 0 || !strings.Contains(b.Warnings[0], file)) {
			t.Errorf("Probe does not warn of %s: %+v", file, b)
		}
	}
	checkGemm(t, e, gemmCase{m: 5, n: 6, k: 7, alpha: 1})
}

// A library that is not the one it should be: libc has no matrix product.
func TestForeignLibraryIsSkipped(t *testing.T) {
	spec := librarySpec{name: "libc", env: "GEOALIGN_NONE", files: []string{"libc.so.6", "libSystem.dylib"}, load: loadOneDNN}
	l := spec.search()
	if l.backend != nil || l.info.Found || l.info.Reason == "" {
		t.Errorf("libc was taken for oneDNN: %+v", l.info)
	}
}

func TestAbsentBackendNamesWhatToInstall(t *testing.T) {
	specs := librarySpecs
	defer func() { librarySpecs = specs }()
	librarySpecs = []librarySpec{{name: "onednn", env: "GEOALIGN_NONE", files: []string{"libgeoalign-absent.so"}, load: loadOneDNN, install: specs[0].install}}
	loaded.m = nil
	defer func() { loaded.m = nil }()
	_, _, err := choose("onednn")
	if err == nil || !strings.Contains(err.Error(), "libdnnl2") || !strings.Contains(err.Error(), "no library found") {
		t.Errorf("got %v, want an error that names libdnnl2", err)
	}
	l, warnings, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	if l.info.Name != backendBuiltin || len(warnings) != 0 {
		t.Errorf("without libraries: got %s and warnings %q, want builtin without one", l.info.Name, warnings)
	}
	if info := Probe()[0]; info.Found || !strings.Contains(info.Install, "libdnnl2") {
		t.Errorf("Probe: %+v", info)
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

// wrongGemm computes something else in one of the ways that the self-test must see.
type wrongGemm struct {
	plainGemm
	kind string
}

func (w wrongGemm) sgemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	switch w.kind {
	case "reads C at beta 0":
		c[0] *= 0
		if c[0] == 0 {
			break
		}
		c[0] += beta
		return
	case "ignores alpha":
		alpha = 1
	case "ignores beta":
		beta = 0
	case "ignores a transpose":
		if transA && m == k {
			transA = false
		}
		transB = false
		ldb = max(ldb, n)
	case "writes beyond the row":
		defer func() { c[n] = 0 }()
	case "panics":
		panic("illegal instruction")
	}
	w.plainGemm.sgemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

func TestSelfTestFindsDefects(t *testing.T) {
	if err := selfTest(plainGemm{}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"reads C at beta 0", "ignores alpha", "ignores beta", "ignores a transpose", "writes beyond the row", "panics"} {
		if err := selfTest(wrongGemm{kind: kind}); err == nil {
			t.Errorf("a product that %s passes", kind)
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
