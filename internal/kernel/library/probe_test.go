//go:build !static

package library

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/testlib"
)

func TestMain(m *testing.M) {
	if os.Getenv("GEOALIGN_PROBE") != "" {
		dynlib.ProbeInChild()
	}
	os.Exit(m.Run())
}

// probeIn turns the trial in child processes on, with a cache of its own.
func probeIn(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the broken libraries are for Linux on amd64")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dynlib.SetProbing(true)
	t.Cleanup(func() { dynlib.SetProbing(false) })
}

// brokenLibrary writes a library that GEOALIGN_ONEDNN names and returns oneDNN's
// specification with that file alone.
func brokenLibrary(t *testing.T, content []byte) (librarySpec, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "libbroken.so")
	if err := os.WriteFile(file, content, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GEOALIGN_ONEDNN", file)
	spec := librarySpecs[0]
	spec.files = nil
	return spec, file
}

var goodVersion = testlib.Func{Name: "dnnl_version", Code: testlib.ReturnsInts(2, 6, 3)}

func sgemmCode(code []byte) testlib.Func { return testlib.Func{Name: "dnnl_sgemm", Code: code} }

func versionCode(code []byte) []testlib.Func {
	return []testlib.Func{sgemmCode(testlib.ReturnsZero), {Name: "dnnl_version", Code: code}}
}

func TestBrokenLibrariesAreSurvived(t *testing.T) {
	probeIn(t)
	sound := []testlib.Func{goodVersion, sgemmCode(testlib.ReturnsZero)}
	rows := []struct {
		name    string
		content []byte
		want    []string
	}{
		{"empty", nil, []string{"cannot be loaded"}},
		{"text", []byte("not a library\n"), []string{"cannot be loaded"}},
		{"half a library", testlib.Build(sound, nil)[:100], []string{"cannot be loaded"}},
		{"no functions", testlib.Build(nil, nil), []string{"has no function dnnl_sgemm"}},
		{"no version", testlib.Build([]testlib.Func{sgemmCode(testlib.ReturnsZero)}, nil), []string{"has no function dnnl_version"}},
		{"null version", testlib.Build(versionCode(testlib.ReturnsZero), nil), []string{"not oneDNN 2 or 3"}},
		{"too old", testlib.Build(versionCode(testlib.ReturnsInts(1, 8, 0)), nil), []string{"oneDNN 2 or 3"}},
		{"too new", testlib.Build(versionCode(testlib.ReturnsInts(9, 0, 0)), nil), []string{"oneDNN 2 or 3"}},
		{"wrong result", testlib.Build(sound, nil), []string{"wrong result"}},
		{"segfault at load", testlib.Build(sound, testlib.Segfaults), []string{"loading it ended a trial process", "segmentation fault"}},
		{"exit at load", testlib.Build(sound, testlib.ExitsZero), []string{"loading it ended a trial process (exit status 0)"}},
		{"abort at load", testlib.Build(sound, testlib.KillsItself), []string{"loading it", "abort"}},
		{"segfault in version", testlib.Build(versionCode(testlib.Segfaults), nil), []string{"version", "segmentation fault"}},
		{"segfault in product", testlib.Build([]testlib.Func{goodVersion, sgemmCode(testlib.Segfaults)}, nil), []string{"self-test", "segmentation fault"}},
		{"illegal instruction", testlib.Build([]testlib.Func{goodVersion, sgemmCode(testlib.Illegal)}, nil), []string{"self-test", "illegal instruction"}},
		{"exit in product", testlib.Build([]testlib.Func{goodVersion, sgemmCode(testlib.ExitsZero)}, nil), []string{"its self-test ended a trial process (exit status 0)"}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			spec, file := brokenLibrary(t, r.content)
			l := spec.search()
			if l.Backend != nil || l.Info.Found || len(l.Info.Warnings) != 1 {
				t.Fatalf("got %+v, want one warning", l.Info)
			}
			for _, want := range append(r.want, file) {
				if !strings.Contains(l.Info.Warnings[0], want) {
					t.Errorf("%q is missing in %q", want, l.Info.Warnings[0])
				}
			}
		})
	}
}

// After a library that kills the child the next one is tried.
func TestNextLibraryAfterACrash(t *testing.T) {
	probeIn(t)
	spec, file := brokenLibrary(t, testlib.Build(nil, testlib.Segfaults))
	second := filepath.Join(filepath.Dir(file), "libsecond.so")
	if err := os.WriteFile(second, testlib.Build(nil, testlib.ExitsZero), 0o755); err != nil {
		t.Fatal(err)
	}
	spec.files = []string{second, "libgeoalign-absent.so"}
	l := spec.search()
	if len(l.Info.Warnings) != 2 || !strings.Contains(l.Info.Warnings[0], file) || !strings.Contains(l.Info.Warnings[1], second) {
		t.Errorf("got %+v, want a warning for each of two files", l.Info)
	}
	spec.files = librarySpecs[0].files
	alone := librarySpecs[0].search
	l = spec.search()
	t.Setenv("GEOALIGN_ONEDNN", "")
	if want := alone(); l.Info.Found != want.Info.Found || l.Info.File != want.Info.File {
		t.Errorf("behind a broken library: got %+v, want %+v", l.Info, want.Info)
	}
}
