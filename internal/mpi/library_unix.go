//go:build (linux || darwin) && (amd64 || arm64) && !static

package mpi

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// opened is a library that the loader has opened.
type opened struct {
	handle uintptr
	file   string
}

// open loads a library by file name or path, with its functions out of sight of others.
func open(file string) (*opened, error) {
	h, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	return &opened{handle: h, file: file}, nil
}

// share lets libraries that are loaded later see the functions of l: parts of Open MPI that it
// loads itself are not linked to it.
func (l *opened) share() error {
	_, err := purego.Dlopen(l.file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	return err
}

// close gives a library back that is not used.
func (l *opened) close() { _ = purego.Dlclose(l.handle) } // it stays loaded at worst

// symbol returns the address of a function or variable of l, 0 if it has none.
func (l *opened) symbol(name string) uintptr {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0
	}
	return p
}

// libc returns the address of a function of the C library, 0 if it has none.
func libc(name string) uintptr {
	p, err := purego.Dlsym(purego.RTLD_DEFAULT, name)
	if err != nil {
		return 0
	}
	return p
}

// path returns the file that the function at an address came from, "" if it is unknown.
func path(address uintptr) string {
	// Dl_info of dladdr(3): file name, base, symbol name, symbol address.
	info := new(struct {
		file            *byte
		base, name, sym uintptr
	})
	f := libc("dladdr")
	if f == 0 || ccall(f, address, uintptr(unsafe.Pointer(info))) == 0 || info.file == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(info.file), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(info.file, n))
}

// ccall calls a C function of whole numbers and pointers, which are on the heap. It allocates
// nothing if args is a slice on the heap.
//
//go:uintptrescapes
func ccall(f uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(f, args...)
	return r
}

// setenv sets a variable in the environment that C libraries read, unless it is there. Go's own
// environment, and so that of child processes, stays as it is.
func setenv(name, value string) error {
	var set func(name, value string, overwrite int32) int32
	purego.RegisterFunc(&set, libc("setenv"))
	if set(name, value, 0) != 0 {
		return fmt.Errorf("setenv %s failed", name)
	}
	return nil
}
