package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/dynlib"
)

// What is said of a library that is nowhere, that is none, or that is another one.
func TestLibrariesThatCannotBeUsed(t *testing.T) {
	if dynlib.Static || runtime.GOOS != "linux" {
		t.Skip("needs a build that loads libraries, and the C library of Linux")
	}
	folder := t.TempDir()
	for name, c := range map[string]struct {
		names     []string
		content   string // of a file in the folder
		functions []string
		want      []string
	}{
		"nowhere":    {names: []string{"libgeoalign-no-such.so.9"}, want: []string{"cuda: the part is not found: install it so"}},
		"no library": {names: []string{"libgeoalign-text.so.9"}, content: "text", want: []string{"cuda: the part cannot be used", "libgeoalign-text.so.9", "install it so"}},
		"another":    {names: []string{"libc.so.6"}, functions: []string{"getenv", "cuNoSuchFunction"}, want: []string{"libc.so.6 is too old: it has no function cuNoSuchFunction", "install it so"}},
		"right":      {names: []string{"libgeoalign-no-such.so.9", "libc.so.6"}, functions: []string{"getenv"}},
	} {
		t.Setenv(LibrariesEnv, folder)
		if c.content != "" {
			check.OK(t, os.WriteFile(filepath.Join(folder, c.names[0]), []byte(c.content), 0o644))
		}
		l, err := part{what: "the part", names: c.names, install: "install it so", functions: c.functions}.open()
		if len(c.want) == 0 && (err != nil || l.functions["getenv"] == 0) {
			t.Errorf("%s: got %v", name, err)
		}
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want an error with %q", name, err, w)
			}
		}
	}
}

// The folders and files of the variable are tried before all others, in their order and with the best name first.
func TestCandidates(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	var want []string
	for _, f := range []string{filepath.Join(first, "libx.so.2"), filepath.Join(second, "libx.so.3"), filepath.Join(second, "libx.so.2"), filepath.Join(second, "mine.so")} {
		check.OK(t, os.WriteFile(f, nil, 0o644))
		want = append(want, f)
	}
	t.Setenv(LibrariesEnv, strings.Join([]string{first, filepath.Join(first, "gone.so"), second, filepath.Join(second, "mine.so")}, string(os.PathListSeparator)))
	got := part{names: []string{"libx.so.3", "libx.so.2"}}.candidates()
	want = append(want, "libx.so.3", "libx.so.2")
	if len(got) < len(want) || strings.Join(got[:len(want)], " ") != strings.Join(want, " ") {
		t.Errorf("got %q, want %q first", got, want)
	}
}

// A Python environment may be called as a pattern of others.
func TestCandidatesOfAnyFolder(t *testing.T) {
	venv := filepath.Join(t.TempDir(), "[of]")
	want := filepath.Join(venv, "lib/python3.12/site-packages/nvidia/x/lib/libx.so.2")
	check.OK(t, errors.Join(os.MkdirAll(filepath.Dir(want), 0o755), os.WriteFile(want, nil, 0o644)))
	t.Setenv("VIRTUAL_ENV", venv)
	if got := (part{names: []string{"libx.so.2"}}).candidates(); !slices.Contains(got, want) {
		t.Errorf("got %q, want %q too", got, want)
	}
}

// Without libraries Open names the first one that is nowhere, and what to do.
func TestOpenWithoutLibraries(t *testing.T) {
	if dynlib.Static {
		t.Skip("a static build loads no libraries")
	}
	t.Setenv(LibrariesEnv, t.TempDir())
	d, err := Open(Options{})
	if err == nil {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		t.Skip("this machine has a GPU whose libraries are found without the variable")
	}
	for _, p := range []part{driverPart, compilerPart, matrixPart} {
		if strings.Contains(err.Error(), p.what) && strings.Contains(err.Error(), p.install) {
			return
		}
	}
	if !strings.Contains(err.Error(), "nvidia-smi") { // a driver without a GPU
		t.Errorf("got %v", err)
	}
}

// A driver for CUDA 12 gets libraries of CUDA 12, and a file that has the name of another part, or of a version that is left out, is not
// tried.
func TestPartsOfAVersion(t *testing.T) {
	if got := compilerPart.upTo(13).names; len(got) != 2 {
		t.Errorf("with CUDA 13: %q", got)
	}
	twelve := compilerPart.upTo(12)
	if len(twelve.names) != 1 || twelve.names[0] != "libnvrtc.so.12" || len(compilerPart.names) != 2 {
		t.Errorf("with CUDA 12: %q of %q", twelve.names, compilerPart.names)
	}
	for file, want := range map[string][3]bool{ // of the driver, of NVRTC of CUDA 12, of cuBLASLt
		"/a/libcuda.so.580.1":       {true, false, false},
		"/a/libnvrtc.so.12.8.93":    {false, true, false},
		"/a/libnvrtc.so.13":         {false, false, false},
		"/a/libcublasLt.so.12":      {false, false, true},
		"/a/libcudaemu-0123.so":     {true, true, true},
		"/a/libnvrtc.so":            {false, true, false},
		"/a/libcublasLt.so.11.10.3": {false, false, false},
	} {
		if got := [3]bool{driverPart.mine(file), twelve.mine(file), matrixPart.mine(file)}; got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}
