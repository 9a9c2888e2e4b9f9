//go:build (linux || darwin) && (amd64 || arm64) && !static

package blas

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/freelist"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// library is a BLAS: the Fortran function sgemm_, whose arguments are all pointers. It is column-major, so the
// row-major product C = op(A) op(B) is asked for as C^T = op(B)^T op(A)^T.
//
// Builds take sizes of 32 or of 64 bits. They are given 64: of a number at an address the lower half comes first on
// amd64 and arm64, and that is what the others read.
type library struct {
	version, file string
	fn            uintptr
	calls         freelist.List[call]
}

// call holds what the pointers of one call point to. It lives on the heap, since a stack may move.
type call struct {
	m, n, k, lda, ldb, ldc int64
	alpha, beta            float32
	transA, transB         byte
	a, b, c                unsafe.Pointer
	list                   [15]uintptr // of arguments: one that the call made itself would be allocated each time
}

// accelerate is where macOS has its BLAS.
const accelerate = "/System/Library/Frameworks/Accelerate.framework/Accelerate"

// Find loads the library of the system, once. found is nil where there is none, which is no error, and where it cannot
// be used, which the warning says.
func Find() (found gemm.Backend, warning string) { return find() }

var find = sync.OnceValues(func() (gemm.Backend, string) { return load(accelerate) })

// load loads and tests the library in a file, if that is there.
func load(file string) (found gemm.Backend, warning string) {
	l, err := open(file)
	if err == nil {
		err = check(l)
	}
	switch {
	case err == nil:
		return l, ""
	case !dynlib.Absent(err):
		return nil, fmt.Sprintf("%s is not used: %v", file, err)
	}
	return nil, ""
}

// open loads a library, on one thread a call: the engine splits the work itself.
func open(file string) (*library, error) {
	_ = dynlib.SetEnv("VECLIB_MAXIMUM_THREADS", "1", true) // without it it oversubscribes the machine but stays correct
	lib, err := dynlib.Open(file)
	if err != nil {
		return nil, err
	}
	x := &library{version: "Accelerate"}
	x.calls.Make = func() *call { return new(call) }
	if x.fn, err = lib.Func("sgemm_"); err != nil {
		return nil, err
	}
	x.file = lib.Path(x.fn)
	return x, nil
}

// Info implements gemm.Backend.
func (l *library) Info() (version, file string) { return l.version, l.file }

// SGEMM implements gemm.Backend. The last two arguments are the lengths of the two strings, which Fortran compilers
// pass out of sight.
func (l *library) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	s := l.calls.Take()
	s.transA, s.transB = letter(transA), letter(transB)
	s.m, s.n, s.k, s.lda, s.ldb, s.ldc = int64(m), int64(n), int64(k), int64(lda), int64(ldb), int64(ldc)
	s.alpha, s.beta = alpha, beta
	s.a, s.b, s.c = unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])
	s.list = [...]uintptr{
		uintptr(unsafe.Pointer(&s.transB)), uintptr(unsafe.Pointer(&s.transA)), uintptr(unsafe.Pointer(&s.n)),
		uintptr(unsafe.Pointer(&s.m)), uintptr(unsafe.Pointer(&s.k)), uintptr(unsafe.Pointer(&s.alpha)),
		uintptr(s.b), uintptr(unsafe.Pointer(&s.ldb)), uintptr(s.a), uintptr(unsafe.Pointer(&s.lda)),
		uintptr(unsafe.Pointer(&s.beta)), uintptr(s.c), uintptr(unsafe.Pointer(&s.ldc)), 1, 1,
	}
	purego.SyscallN(l.fn, s.list[:]...)
	runtime.KeepAlive(s)
	s.a, s.b, s.c = nil, nil, nil
	l.calls.Give(s)
}

// letter is how BLAS names an operand that is transposed or not.
func letter(trans bool) byte {
	if trans {
		return 'T'
	}
	return 'N'
}

// check compares a library with the plain product on a few small shapes, so that one with another interface or a
// defect is not trusted.
func check(b gemm.Backend) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("self-test: %v", v)
		}
	}()
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {40, 70, 50}} {
		for t := range 8 {
			if !agrees(b, t&1 != 0, t&2 != 0, s[0], s[1], s[2], float32(t>>2)) {
				return errors.New("self-test: wrong result")
			}
		}
	}
	return nil
}

// agrees compares one product, whose rows are longer than they have to be.
func agrees(b gemm.Backend, transA, transB bool, m, n, k int, beta float32) bool {
	p := gemm.Product{TransA: transA, TransB: transB, M: m, N: n, K: k}
	ra, ca := p.StoredA()
	rb, cb := p.StoredB()
	lda, ldb, ldc := ca+1, cb+2, n+3
	x, y, got, want := gemm.Values(ra*lda, 1), gemm.Values(rb*ldb, 2), gemm.Values(m*ldc, 3), gemm.Values(m*ldc, 3)
	for i := range got {
		if beta == 0 && i%ldc < n { // must not be read
			got[i] = float32(math.NaN())
		}
	}
	b.SGEMM(transA, transB, m, n, k, 0.5, x, lda, y, ldb, beta, got, ldc)
	gemm.Plain{}.SGEMM(transA, transB, m, n, k, 0.5, x, lda, y, ldb, beta, want, ldc)
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-5*float64(k+1)) {
			return false
		}
	}
	return true
}
