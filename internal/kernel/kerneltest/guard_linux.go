package kerneltest

import (
	"syscall"
	"testing"
	"unsafe"
)

// Guarded returns n words between two pages that must not be touched: they end
// where the second begins, or begin where the first ends.
func Guarded(t *testing.T, atEnd bool) func(n int) []float32 {
	page := syscall.Getpagesize()
	all, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skipf("no mapping to guard memory with: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(all) })
	for _, p := range [][]byte{all[:page], all[2*page:]} {
		if err := syscall.Mprotect(p, syscall.PROT_NONE); err != nil {
			t.Skipf("no protection to guard memory with: %v", err)
		}
	}
	words := unsafe.Slice((*float32)(unsafe.Pointer(&all[page])), page/4)
	return func(n int) []float32 {
		if atEnd {
			return words[len(words)-n:]
		}
		return words[:n:n]
	}
}
