package turbojpeg

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
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

// library returns the library of this machine.
func library(t testing.TB) *Library {
	l, _, err := Find()
	if err != nil {
		t.Skip(err)
	}
	return l
}

func TestBrokenLibrariesArePassedOver(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" || dynlib.Static {
		t.Skip("the broken libraries are for Linux on amd64")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dynlib.SetProbing(true)
	t.Cleanup(func() { dynlib.SetProbing(false) })
	with := func(code []byte) (list []testlib.Func) {
		for _, name := range functionNames {
			list = append(list, testlib.Func{Name: name, Code: code})
		}
		return list
	}
	// A handle and texts that are not null: all that a function returns points to zeros.
	handles := with(testlib.ReturnsInts(0))
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "cannot be loaded"},
		{"another library", testlib.Build([]testlib.Func{{Name: "jpeg_start_decompress", Code: testlib.ReturnsZero}}, nil), "has no function tjInitDecompress"},
		{"version 1", testlib.Build(with(testlib.ReturnsZero)[:fErrorCode], nil), "has no function tjGetErrorCode: it is not libjpeg-turbo's libturbojpeg of version 2"},
		{"no handle", testlib.Build(with(testlib.ReturnsZero), nil), "gives no decompressor"},
		{"always fails", testlib.Build(handles, nil), "self-test: turbojpeg: tjDecompressHeader3"},
		{"does nothing", testlib.Build(append(handles[:1:1], with(testlib.ReturnsZero)[1:]...), nil), "the file has 0x0 pixels"},
		{"crash at load", testlib.Build(handles, testlib.Segfaults), "loading it ended a trial process"},
		{"crash in decoding", testlib.Build(append(handles[:1:1], with(testlib.Segfaults)[1:]...), nil), "its self-test ended a trial process"},
		{"exit in decoding", testlib.Build(append(handles[:1:1], with(testlib.ExitsZero)[1:]...), nil), "its self-test ended a trial process (exit status 0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "libbroken.so")
			if err := os.WriteFile(file, c.content, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv(Variable, file)
			defer func(files []string) { trial.Files = files }(trial.Files)
			trial.Files = nil
			l, warnings, err := Find()
			if l != nil || err == nil || len(warnings) != 1 || !strings.Contains(warnings[0], c.want) || !strings.Contains(warnings[0], file) {
				t.Errorf("got %v, %q, %v, want a warning of %q", l, warnings, err, c.want)
			}
		})
	}
	t.Run("absent", func(t *testing.T) {
		defer func(files []string) { trial.Files = files }(trial.Files)
		trial.Files = []string{"libgeoalign-absent.so"}
		found.m = nil
		defer func() { found.m = nil }()
		t.Setenv(Variable, "")
		if l, warnings, err := Find(); l != nil || len(warnings) != 0 || err == nil {
			t.Errorf("got %v, %q, %v, want no library and nothing to warn of", l, warnings, err)
		}
	})
}

// Handles are lent to one goroutine at a time, and there are no more than goroutines.
func TestManyAtOnce(t *testing.T) {
	l := library(t)
	file, want := picture(90, 40, false)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			got := make([]byte, 3*90*40)
			for range 200 {
				if err := l.Decode(got, file, 90, 40); err != nil {
					t.Error(err)
					return
				}
				for i := range want {
					if d := int(got[i]) - int(want[i]); d < -12 || d > 12 {
						t.Errorf("byte %d: got %d, want %d", i, got[i], want[i])
						return
					}
				}
			}
		})
	}
	all.Wait()
	if n := len(l.idle); n > 5 {
		t.Errorf("%d handles for 4 goroutines and the self-test", n)
	}
}

func TestRefuses(t *testing.T) {
	l := library(t)
	file, _ := picture(40, 24, false)
	dst := make([]byte, 3*40*24)
	for _, c := range []struct {
		name string
		dst  []byte
		file []byte
		w, h int
		want string
	}{
		{"no file", dst, nil, 40, 24, "0 bytes"},
		{"no room", dst[1:], file, 40, 24, "does not go into"},
		{"other size", dst, file, 24, 40, "the file has 40x24 pixels"},
		{"no JPEG", dst, []byte("not a picture"), 40, 24, "tjDecompressHeader3"},
		{"cut", dst, file[:len(file)*3/4], 40, 24, "tjDecompress2"},
	} {
		if err := l.Decode(c.dst, c.file, c.w, c.h); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if err := l.Decode(dst, file, 40, 24); err != nil {
		t.Errorf("after errors: %v", err)
	}
}

func TestNothingAllocated(t *testing.T) {
	l := library(t)
	file, _ := picture(40, 24, false)
	dst := make([]byte, 3*40*24)
	if n := testing.AllocsPerRun(50, func() {
		if err := l.Decode(dst, file, 40, 24); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAfterDamage: a file whose tables are damaged changes nothing for those that follow. A decompressor that has seen such a table
// refuses every file after it.
func TestAfterDamage(t *testing.T) {
	l := library(t)
	file, _ := picture(40, 24, false)
	want, got := make([]byte, 3*40*24), make([]byte, 3*40*24)
	if err := l.Decode(want, file, 40, 24); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 2; at < len(file); at++ {
		for _, v := range []byte{0, 0x7f, 0xff} {
			c := bytes.Clone(file)
			c[at] = v
			if l.Decode(got, c, 40, 24) != nil {
				refused++
			}
			if err := l.Decode(got, file, 40, 24); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("after a file with byte %d changed to %d: %v", at, v, err)
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d files were refused", refused)
	}
}
