package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/files"
)

// LibrariesEnv names folders, or shared libraries, that are looked in before all others, as a list like PATH.
const LibrariesEnv = "GEOALIGN_CUDA_LIBRARIES"

// library is a shared library with the addresses of the functions that are called.
type library struct {
	*dynlib.Library
	functions map[string]uintptr
}

// part describes a library that the device needs.
type part struct {
	what      string   // in words
	names     []string // of files, the best first
	install   string   // what to do where there is none
	functions []string
}

var (
	driverPart = part{
		what: "the NVIDIA driver", names: []string{"libcuda.so.1", "libcuda.so"},
		install: "install the driver of the GPU (nvidia-smi shows whether it runs)", functions: driverFunctions,
	}
	compilerPart = part{
		what: "NVRTC", names: []string{"libnvrtc.so.13", "libnvrtc.so.12"},
		install: "install it with: pip install nvidia-cuda-nvrtc-cu12, or set " + LibrariesEnv +
			" to the folder of libnvrtc.so.12 or .13",
		functions: compilerFunctions,
	}
	matrixPart = part{
		what: "cuBLASLt", names: []string{"libcublasLt.so.13", "libcublasLt.so.12"},
		install: "install it with: pip install nvidia-cublas-cu12, or set " + LibrariesEnv +
			" to the folder of libcublasLt.so.12 or .13",
		functions: matrixFunctions,
	}
)

// upTo is the part in the versions that a driver for a version of CUDA runs: code that a newer compiler makes it
// refuses.
func (p part) upTo(cuda int) part {
	p.names = slices.DeleteFunc(slices.Clone(p.names), func(name string) bool {
		v, err := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:])
		return err == nil && v > cuda
	})
	return p
}

// stem begins the names of a part's files, whatever their version.
func (p part) stem() string {
	stem, _, _ := strings.Cut(p.names[len(p.names)-1], ".so")
	return stem + ".so"
}

// mine says whether a file that somebody names may be the part: not where it has the name of another, or of a version
// left out.
func (p part) mine(file string) bool {
	name := filepath.Base(file)
	for _, o := range []part{driverPart, compilerPart, matrixPart} {
		if strings.HasPrefix(name, o.stem()) {
			return o.stem() == p.stem() && (name == p.stem() || slices.ContainsFunc(p.names, func(n string) bool {
				return strings.HasPrefix(name, n)
			}))
		}
	}
	return true
}

// open loads a library from the first place that has it: the folders and files of LibrariesEnv, the loader's own
// places, CUDA's usual folders, and Python packages.
func (p part) open() (*library, error) {
	var errs []error
	for _, file := range p.candidates() {
		l, err := dynlib.Open(file)
		if err != nil {
			if !dynlib.Absent(err) {
				errs = append(errs, err)
			}
			continue
		}
		out := &library{l, map[string]uintptr{}}
		missing := ""
		for _, f := range p.functions {
			if out.functions[f] = l.Symbol(f); out.functions[f] == 0 {
				missing = f
			}
		}
		if missing == "" {
			return out, nil
		}
		l.Close()
		errs = append(errs, fmt.Errorf("%s is too old: it has no function %s", file, missing))
	}
	if len(errs) == 0 {
		return nil, fmt.Errorf("cuda: %s is not found: %s", p.what, p.install)
	}
	return nil, fmt.Errorf("cuda: %s cannot be used: %w: %s", p.what, errors.Join(errs...), p.install)
}

// candidates are the files to try, in order.
func (p part) candidates() (files []string) {
	for _, place := range filepath.SplitList(os.Getenv(LibrariesEnv)) {
		if strings.Contains(filepath.Base(place), ".so") {
			if p.mine(place) {
				files = append(files, place)
			}
			continue
		}
		for _, name := range p.names {
			files = append(files, filepath.Join(place, name))
		}
	}
	files = append(files, p.names...)
	for _, pattern := range folders() {
		found, _ := filepath.Glob(pattern)
		sort.Sort(sort.Reverse(sort.StringSlice(found)))
		for _, name := range p.names {
			for _, folder := range found {
				files = append(files, filepath.Join(folder, name))
			}
		}
	}
	return slices.DeleteFunc(files, func(f string) bool {
		_, err := os.Stat(f)
		return filepath.IsAbs(f) && err != nil
	})
}

// folders are patterns of the folders that CUDA's libraries usually lie in.
func folders() []string {
	list := []string{"/usr/local/nvidia/lib64", "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/x86_64-linux/lib"}
	packages := []string{"/usr/lib/python3*/*-packages", "/usr/local/lib/python3*/*-packages",
		"/opt/*/lib/python3*/site-packages", "/opt/*/.venv/lib/python3*/site-packages"}
	if home, err := os.UserHomeDir(); err == nil {
		packages = append(packages, filepath.Join(files.Literal(home), ".local/lib/python3*/site-packages"))
	}
	if venv := os.Getenv("VIRTUAL_ENV"); venv != "" {
		packages = append([]string{filepath.Join(files.Literal(venv), "lib/python3*/site-packages")}, packages...)
	}
	for _, folder := range filepath.SplitList(os.Getenv("PYTHONPATH")) {
		packages = append(packages, files.Literal(folder))
	}
	for _, p := range packages {
		list = append(list, filepath.Join(p, "nvidia/*/lib"))
	}
	return list
}

// call calls a function of whole numbers and pointers and returns its status.
//
//go:uintptrescapes
func (l *library) call(name string, args ...uintptr) uintptr {
	return dynlib.Call(l.functions[name], args...) & 0xffffffff
}
