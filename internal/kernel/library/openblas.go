package library

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/freelist"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// blas is the matrix product of OpenBLAS or MKL: the Fortran function sgemm_,
// whose arguments are all pointers. It is column-major, so the row-major product
// C = op(A) op(B) is asked for as C^T = op(B)^T op(A)^T.
type blas struct {
	lib     *dynlib.Library
	version string
	fn      uintptr
	args    freelist.List[blasArgs]
}

// blasArgs holds what the pointers of one call point to. It lives on the heap,
// since a stack may move.
type blasArgs struct {
	m, n, k, lda, ldb, ldc int32
	alpha, beta            float32
	transA, transB         byte
	a, b, c                unsafe.Pointer
	// list is the argument list of the call: one that the call made itself would
	// be allocated each time.
	list [15]uintptr
}

// openBLASNames and mklNames are the files to look for.
var (
	openBLASNames = []string{"libopenblas.so.0", "libopenblas.so", "libopenblas.0.dylib", "libopenblas.dylib"}
	mklNames      = []string{"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"}
)

// loadOpenBLAS makes a backend of a loaded OpenBLAS, on one thread a call.
func loadOpenBLAS(lib *dynlib.Library) (gemm.Backend, error) {
	set, err := lib.Func("openblas_set_num_threads")
	if err != nil {
		return nil, err
	}
	dynlib.Call(set, 1)
	var version string
	if f, err := lib.Func("openblas_get_config"); err == nil {
		r := dynlib.Call(f)
		version = dynlib.String(*(*unsafe.Pointer)(unsafe.Pointer(&r)))
	}
	return newBLAS(lib, version)
}

// loadMKL makes a backend of a loaded MKL, on one thread a call.
func loadMKL(lib *dynlib.Library) (gemm.Backend, error) {
	set, err := lib.Func("MKL_Set_Num_Threads")
	if err != nil {
		return nil, err
	}
	dynlib.Call(set, 1)
	return newBLAS(lib, "")
}

func newBLAS(lib *dynlib.Library, version string) (gemm.Backend, error) {
	fn, err := lib.Func("sgemm_")
	if err != nil {
		return nil, err
	}
	l := &blas{lib: lib, fn: fn, version: version}
	l.args.Make = func() *blasArgs { return new(blasArgs) }
	return l, nil
}

func (l *blas) Info() (version, file string) { return l.version, l.lib.Path(l.fn) }

// SGEMM implements gemm.Backend.
func (l *blas) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	s := l.args.Take()
	s.transA, s.transB = byte(transLetter(transA)), byte(transLetter(transB))
	s.m, s.n, s.k, s.lda, s.ldb, s.ldc = int32(m), int32(n), int32(k), int32(lda), int32(ldb), int32(ldc)
	s.alpha, s.beta = alpha, beta
	s.a, s.b, s.c = unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])
	l.call(s)
	s.a, s.b, s.c = nil, nil, nil
	l.args.Give(s)
}
