// Package cudatest opens the CUDA device of tests: the GPU of the machine, or where there is none the emulator of
// tools/cudaemu, which needs a C++ compiler.
package cudatest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/dynlib"
)

var opened = sync.OnceValues(func() (*cuda.Device, error) {
	d, err := cuda.Open(cuda.Options{})
	if err == nil {
		return d, nil
	}
	file, bad := emulator()
	if bad != nil {
		return nil, bad
	}
	if file != "" {
		os.Setenv(cuda.LibrariesEnv, file)
		return cuda.Open(cuda.Options{})
	}
	return nil, err
})

// errBroken is of an emulator that does not build although there is a compiler.
var errBroken = errors.New("the emulator of tools/cudaemu does not build")

// Open returns a device that all tests of a package share. It skips the test where there is neither a GPU nor a C++
// compiler.
func Open(t testing.TB) *cuda.Device {
	t.Helper()
	if dynlib.Static {
		t.Skip("a static build loads no libraries")
	}
	d, err := opened()
	if err != nil && (os.Getenv(cuda.LibrariesEnv) != "" || errors.Is(err, errBroken)) {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("needs a GPU, or g++ for the emulator: %v", err)
	}
	return d
}

// Emulator returns the file of the emulator, which programs use that are started with it as cuda.LibrariesEnv. It skips
// the test where there is no C++ compiler.
func Emulator(t testing.TB) string {
	t.Helper()
	if dynlib.Static {
		t.Skip("a static build loads no libraries")
	}
	file, err := emulator()
	switch {
	case err != nil:
		t.Fatal(err)
	case file == "":
		t.Skip("needs g++ for the emulator")
	}
	return file
}

// Use has programs that this process runs or starts find a device during the test: that of the machine, or the
// emulator.
func Use(t testing.TB) {
	t.Helper()
	if !dynlib.Static {
		if d, err := cuda.Open(cuda.Options{}); err == nil {
			check.OK(t, d.Close())
			return
		}
	}
	t.Setenv(cuda.LibrariesEnv, Emulator(t))
}

// Emulated says whether a device is the emulator.
func Emulated(d *cuda.Device) bool { return strings.HasPrefix(d.Info().Name, "Emulated") }

// emulator builds the emulator, unless a build of the same sources is there, and returns its file; empty: there is no
// compiler for it.
func emulator() (string, error) {
	sources := sources()
	compiler, err := exec.LookPath("g++")
	if len(sources) == 0 || runtime.GOARCH != "amd64" || runtime.GOOS != "linux" || err != nil {
		return "", nil
	}
	folder := filepath.Join(os.TempDir(), "geoalign-cudaemu")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(folder, "libcudaemu-"+stamp(sources)+".so")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	args := []string{"-O2", "-std=c++17", "-shared", "-fPIC", "-w", "-o", file + ".tmp" + pid()}
	for _, s := range sources {
		if strings.HasSuffix(s, ".cpp") {
			args = append(args, s)
		}
	}
	if text, err := exec.Command(compiler, append(args, "-ldl", "-lpthread")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %v\n%s", errBroken, err, text)
	}
	return file, os.Rename(file+".tmp"+pid(), file)
}

// sources lists the files of the emulator. A test runs in the folder of its package, which a build with -trimpath does
// not know.
func sources() []string {
	dir, err := os.Getwd()
	for err == nil {
		if found, _ := filepath.Glob(filepath.Join(dir, "tools/cudaemu/*")); len(found) > 0 {
			return found
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return nil
}
