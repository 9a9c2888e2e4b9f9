//go:build (linux || darwin) && (amd64 || arm64) && !static

package dynlib

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is a shared library that is loaded.
type Library struct {
	handle uintptr
	File   string // as Open was asked for it
}

// Open loads a library by file name or path, with its functions out of sight of others.
//
// The loader keeps the reason of a failure for the thread that asked, and the goroutine may
// be moved to another one before it asks for the reason: it stays on its thread.
func Open(file string) (*Library, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	return &Library{handle: h, File: file}, nil
}

// Share lets libraries that are loaded later see the functions of l: parts of Open MPI that it
// loads itself are not linked to it.
func (l *Library) Share() error {
	_, err := purego.Dlopen(l.File, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	return err
}

// Close gives a library back that is not used. One that was used stays loaded until the program
// ends: numerical libraries do not unload cleanly.
func (l *Library) Close() { _ = purego.Dlclose(l.handle) } // it stays loaded at worst

// Symbol returns the address of a function or variable of l, 0 if it has none.
func (l *Library) Symbol(name string) uintptr {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0
	}
	return p
}

// Func is Symbol of a function that l must have. The error names it.
func (l *Library) Func(name string) (uintptr, error) {
	if p := l.Symbol(name); p != 0 {
		return p, nil
	}
	return 0, fmt.Errorf("%s has no function %s", l.File, name)
}

// Path returns the file that the function at an address of l came from, as the loader resolved it,
// or the file that was asked for where that is not known.
func (l *Library) Path(address uintptr) string {
	// Dl_info of dladdr(3): file name, base, symbol name, symbol address.
	info := new(struct {
		file            unsafe.Pointer
		base, name, sym uintptr
	})
	f := Libc("dladdr")
	if f == 0 || Call(f, address, uintptr(unsafe.Pointer(info))) == 0 || info.file == nil {
		return l.File
	}
	return String(info.file)
}

// Libc returns the address of a function of the C library, 0 if it has none.
func Libc(name string) uintptr {
	p, err := purego.Dlsym(purego.RTLD_DEFAULT, name)
	if err != nil {
		return 0
	}
	return p
}

// String copies a string of C, which ends in a zero byte.
func String(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	for ; *(*byte)(p) != 0; p = unsafe.Add(p, 1) {
		b.WriteByte(*(*byte)(p))
	}
	return b.String()
}

// Call calls a C function of whole numbers and pointers, which are on the heap. It allocates
// nothing if args is a slice on the heap.
//
//go:uintptrescapes
func Call(f uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(f, args...)
	return r
}

// SetEnv sets a variable in the environment that C libraries read, also if it is there where
// overwrite says so. It must come before the library that reads it is loaded. Go's own environment,
// and so that of child processes, stays as it is.
func SetEnv(name, value string, overwrite bool) error {
	f := Libc("setenv")
	if f == 0 {
		return fmt.Errorf("setenv %s: the C library has no such function", name)
	}
	var set func(name, value string, overwrite int32) int32
	purego.RegisterFunc(&set, f)
	var over int32
	if overwrite {
		over = 1
	}
	if set(name, value, over) != 0 {
		return fmt.Errorf("setenv %s failed", name)
	}
	return nil
}
