package library

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/freelist"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// blas is the matrix product of OpenBLAS or MKL: the Fortran function sgemm_,
// whose arguments are all pointers. It is column-major, so the row-major product
// C = op(A) op(B) is asked for as C^T = op(B)^T op(A)^T.
//
// Builds take sizes of 32 or of 64 bits. They are given 64: of a number at an address the lower
// half comes first on amd64 and arm64, and that is what the others read.
type blas struct {
	lib     *dynlib.Library
	version string
	fn      uintptr
	args    freelist.List[blasArgs]
}

// blasArgs holds what the pointers of one call point to. It lives on the heap,
// since a stack may move.
type blasArgs struct {
	m, n, k, lda, ldb, ldc int64
	alpha, beta            float32
	transA, transB         byte
	a, b, c                unsafe.Pointer
	// list is the argument list of the call: one that the call made itself would
	// be allocated each time.
	list [15]uintptr
}

// openBLASNames and mklNames are the files to look for.
var (
	openBLASNames = []string{"libopenblas.so.0", "libopenblas.so", "libscipy_openblas.so", "libscipy_openblas64_.so",
		"libopenblas.0.dylib", "libopenblas.dylib"}
	mklNames = []string{"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"}
)

// naming is how a build of OpenBLAS names its functions.
type naming struct{ prefix, suffix string }

// namings are those that are known: as the sources have them; with sizes of 64 bits (64_, as Julia and
// some distributions have them); and both in the wheels of Python, for numpy and scipy.
var namings = []naming{{"", ""}, {"", "64_"}, {"scipy_", ""}, {"scipy_", "64_"}}

func (n naming) of(function string) string { return n.prefix + function + n.suffix }

// loadOpenBLAS makes a backend of a loaded OpenBLAS, on one thread a call.
func loadOpenBLAS(lib *dynlib.Library) (gemm.Backend, error) {
	for _, n := range namings {
		set := lib.Symbol(n.of("openblas_set_num_threads"))
		if set == 0 {
			continue
		}
		dynlib.Call(set, 1)
		var version string
		if f := lib.Symbol(n.of("openblas_get_config")); f != 0 {
			r := dynlib.Call(f)
			version = dynlib.String(*(*unsafe.Pointer)(unsafe.Pointer(&r)))
		}
		return newBLAS(lib, version, n)
	}
	return nil, fmt.Errorf("%s has no function openblas_set_num_threads, nor one with the prefix scipy_ or the suffix 64_", lib.File)
}

// loadMKL makes a backend of a loaded MKL, on one thread a call.
func loadMKL(lib *dynlib.Library) (gemm.Backend, error) {
	set, err := lib.Func("MKL_Set_Num_Threads")
	if err != nil {
		return nil, err
	}
	dynlib.Call(set, 1)
	return newBLAS(lib, mklVersion(lib), naming{})
}

// mklVersion returns the version as the library writes it: "2026.2" of "Intel(R) oneAPI Math Kernel Library
// Version 2026.2-Product Build ...".
func mklVersion(lib *dynlib.Library) string {
	f := lib.Symbol("MKL_Get_Version_String")
	if f == 0 {
		return ""
	}
	text := heap[[256]byte]()
	dynlib.Call(f, address(text), uintptr(len(text)-1)) // which leaves a zero byte at the end
	_, version, _ := strings.Cut(dynlib.String(unsafe.Pointer(text)), "Version ")
	version, _, _ = strings.Cut(version, " ")
	version, _, _ = strings.Cut(version, "-")
	return version
}

func newBLAS(lib *dynlib.Library, version string, n naming) (gemm.Backend, error) {
	fn, err := lib.Func(n.of("sgemm_"))
	if err != nil {
		return nil, err
	}
	l := &blas{lib: lib, fn: fn, version: version}
	l.args.Make = func() *blasArgs { return new(blasArgs) }
	return l, nil
}

func (l *blas) Info() (version, file string) { return l.version, l.lib.Path(l.fn) }

// SGEMM implements gemm.Backend.
func (l *blas) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	s := l.args.Take()
	s.transA, s.transB = byte(transLetter(transA)), byte(transLetter(transB))
	s.m, s.n, s.k, s.lda, s.ldb, s.ldc = int64(m), int64(n), int64(k), int64(lda), int64(ldb), int64(ldc)
	s.alpha, s.beta = alpha, beta
	s.a, s.b, s.c = unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])
	l.call(s)
	s.a, s.b, s.c = nil, nil, nil
	l.args.Give(s)
}
