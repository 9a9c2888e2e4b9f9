package kernel

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// guardedPages returns memory of some pages between two that must not be touched.
func guardedPages(t *testing.T, pages int) []byte {
	page := syscall.Getpagesize()
	all, err := syscall.Mmap(-1, 0, (pages+2)*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skipf("no mapping to guard memory with: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(all) })
	for _, p := range [][]byte{all[:page], all[(pages+1)*page:]} {
		if err := syscall.Mprotect(p, syscall.PROT_NONE); err != nil {
			t.Skipf("no protection to guard memory with: %v", err)
		}
	}
	return all[page : (pages+1)*page]
}

// place copies x to the end or the start of the memory and returns the copy.
func place[T float32 | uint16](memory []byte, atEnd bool, x []T) []T {
	if len(x) == 0 {
		return x
	}
	size := int(unsafe.Sizeof(x[0])) * len(x)
	at := 0
	if atEnd {
		at = len(memory) - size
	}
	to := unsafe.Slice((*T)(unsafe.Pointer(&memory[at])), len(x))
	copy(to, x)
	return to
}

// A product that reads or writes outside its slices crashes this test.
func TestProductStaysInside(t *testing.T) {
	const most = 70
	for _, atEnd := range []bool{true, false} {
		var memory [5][]byte
		for i := range memory {
			memory[i] = guardedPages(t, most*(most+4)*4/syscall.Getpagesize()+1)
		}
		kerneltest.EachLevel(t, func(t *testing.T) {
			e, err := New(Options{Backend: Builtin, Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			r := rand.New(rand.NewPCG(51, 52))
			for range 300 {
				g := gemmtest.RandomCase(r, 1+r.IntN(most), 1+r.IntN(most), 1+r.IntN(most))
				p := &g.P
				for i, x := range []*gemm.Matrix{&p.A, &p.B} {
					x.F32, x.BF16 = place(memory[i], atEnd, x.F32), place(memory[i], atEnd, x.BF16)
				}
				p.C, p.Bias, p.Activated = place(memory[2], atEnd, p.C), place(memory[3], atEnd, p.Bias), place(memory[4], atEnd, p.Activated)
				p.Packed = e.PackWeights(p) // of every one that can be packed: the whole of B is read
				e.MultiplySerial(p)
				p.Packed = nil
				e.MultiplySerial(p)
			}
			for n := range 100 {
				x, h := place(memory[0], atEnd, make([]float32, n)), place(memory[1], atEnd, make([]uint16, n))
				vector.ToBF16(h, x)
				vector.FromBF16(x, h)
				vector.RoundBF16(x, x)
			}
		})
	}
}
