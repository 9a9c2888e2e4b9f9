//go:build (linux || darwin) && (amd64 || arm64) && !static

package library

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is a shared library loaded at run time. It stays loaded until the
// program ends: numerical libraries do not unload cleanly.
type library struct {
	handle uintptr
	file   string
}

// dlopen loads a library by file name or path.
//
// The loader keeps the reason of a failure for the thread that asked, and the goroutine may
// be moved to another one before it asks for the reason: it stays on its thread.
func dlopen(file string) (*library, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	return &library{handle: h, file: file}, nil
}

// sym returns the address of a function of l, or an error that names it.
func (l *library) sym(name string) (uintptr, error) {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil || p == 0 {
		return 0, fmt.Errorf("%s has no function %s", l.file, name)
	}
	return p, nil
}

// path returns the file that l was loaded from, as the loader resolved it.
func (l *library) path(sym uintptr) string {
	// Dl_info of dladdr(3): file name, base, symbol name, symbol address.
	type dlInfo struct {
		file            unsafe.Pointer
		base, name, sym uintptr
	}
	f, err := purego.Dlsym(purego.RTLD_DEFAULT, "dladdr")
	if err != nil {
		return l.file
	}
	info := new(dlInfo)
	if r, _, _ := purego.SyscallN(f, sym, uintptr(unsafe.Pointer(info))); r == 0 || info.file == nil {
		return l.file
	}
	return cString(info.file)
}

// cString copies a string that ends in a zero byte.
func cString(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	for ; *(*byte)(p) != 0; p = unsafe.Add(p, 1) {
		b.WriteByte(*(*byte)(p))
	}
	return b.String()
}

// ccall calls a C function of whole-number and pointer arguments.
func ccall(f uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(f, args...)
	return r
}

// setCEnv sets a variable in the environment that C libraries read. It must
// come before the library that reads it is loaded. Go's own environment, and so
// that of child processes, stays as it is.
func setCEnv(name, value string) error {
	f, err := purego.Dlsym(purego.RTLD_DEFAULT, "setenv")
	if err != nil {
		return err
	}
	var setenv func(name, value string, overwrite int32) int32
	purego.RegisterFunc(&setenv, f)
	if r := setenv(name, value, 1); r != 0 {
		return fmt.Errorf("setenv %s failed", name)
	}
	return nil
}
