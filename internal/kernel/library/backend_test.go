//go:build !static

package library

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// A library that is not the one it should be: libc has no matrix product.
func TestForeignLibraryIsSkipped(t *testing.T) {
	spec := librarySpec{name: "libc", env: "GEOALIGN_NONE", files: []string{"libc.so.6", "libSystem.dylib"}, load: loadOneDNN}
	l := spec.search()
	if l.Backend != nil || l.Info.Found || l.Info.Reason == "" {
		t.Errorf("libc was taken for oneDNN: %+v", l.Info)
	}
}

func TestAbsentBackendNamesWhatToInstall(t *testing.T) {
	specs := librarySpecs
	defer func() { librarySpecs = specs }()
	librarySpecs = []librarySpec{{name: "onednn", env: "GEOALIGN_NONE", files: []string{"libgeoalign-absent.so"}, load: loadOneDNN, install: specs[0].install}}
	loaded.m = nil
	defer func() { loaded.m = nil }()
	_, _, err := Choose("onednn")
	if err == nil || !strings.Contains(err.Error(), "libdnnl2") || !strings.Contains(err.Error(), "no library found") {
		t.Errorf("got %v, want an error that names libdnnl2", err)
	}
	l, warnings, err := Choose("")
	if err != nil {
		t.Fatal(err)
	}
	if l.Info.Name != Builtin || len(warnings) != 0 {
		t.Errorf("without libraries: got %s and warnings %q, want builtin without one", l.Info.Name, warnings)
	}
	if info := Probe()[0]; info.Found || !strings.Contains(info.Install, "libdnnl2") {
		t.Errorf("Probe: %+v", info)
	}
}

// wrongGemm computes something else in one of the ways that the self-test must see.
type wrongGemm struct {
	gemm.Plain
	kind string
}

func (w wrongGemm) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
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
	w.Plain.SGEMM(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

func TestSelfTestFindsDefects(t *testing.T) {
	if err := selfTest(gemm.Plain{}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"reads C at beta 0", "ignores alpha", "ignores beta", "ignores a transpose", "writes beyond the row", "panics"} {
		if err := selfTest(wrongGemm{kind: kind}); err == nil {
			t.Errorf("a product that %s passes", kind)
		}
	}
}
