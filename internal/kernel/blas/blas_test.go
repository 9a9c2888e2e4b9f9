//go:build (linux || darwin) && (amd64 || arm64) && !static

package blas

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/testlib"
)

// wrong computes something else in one of the ways that the self-test must see.
type wrong struct {
	gemm.Plain
	kind string
}

func (w wrong) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
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

func TestCheckFindsDefects(t *testing.T) {
	if err := check(gemm.Plain{}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"reads C at beta 0", "ignores alpha", "ignores beta", "ignores a transpose", "writes beyond the row", "panics"} {
		if err := check(wrong{kind: kind}); err == nil {
			t.Errorf("a product that %s passes", kind)
		}
	}
}

// A library that is there but is none, or computes something else, is passed over with a warning; one that is absent
// without one.
func TestLoad(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the libraries are made for Linux on amd64")
	}
	sgemm := func(code []byte) testlib.Func { return testlib.Func{Name: "sgemm_", Code: code} }
	for name, r := range map[string]struct {
		content []byte
		want    string // part of the warning; empty: it is used
	}{
		"sizes of 32 bits": {testlib.Build([]testlib.Func{sgemm(testlib.SGEMM(false, -1, nil))}, nil), ""},
		"sizes of 64 bits": {testlib.Build([]testlib.Func{sgemm(testlib.SGEMM(true, -1, nil))}, nil), ""},
		"no functions":     {testlib.Build(nil, nil), "has no function sgemm_"},
		"wrong result":     {testlib.Build([]testlib.Func{sgemm(testlib.ReturnsZero)}, nil), "wrong result"},
		"text":             {[]byte("not a library\n"), "is not used"},
	} {
		file := filepath.Join(t.TempDir(), "libblas.so")
		if err := os.WriteFile(file, r.content, 0o755); err != nil {
			t.Fatal(err)
		}
		found, warning := load(file)
		if r.want != "" {
			if found != nil || !strings.Contains(warning, r.want) || !strings.Contains(warning, file) {
				t.Errorf("%s: %v, %q", name, found, warning)
			}
			continue
		}
		if found == nil || warning != "" {
			t.Errorf("%s: %v, %q", name, found, warning)
		} else if _, path := found.Info(); path != file {
			t.Errorf("%s: from %s", name, path)
		}
	}
	if found, warning := load("libgeoalign-absent.so"); found != nil || warning != "" {
		t.Errorf("absent: %v, %q", found, warning)
	}
}

// The library of this system, if it has one, computes right.
func TestFind(t *testing.T) {
	found, warning := Find()
	if warning != "" {
		t.Error(warning)
	}
	if found == nil {
		t.Skip("this system has no Accelerate")
	}
	version, file := found.Info()
	t.Log(version, file)
	if err := check(found); err != nil {
		t.Error(err)
	}
}
