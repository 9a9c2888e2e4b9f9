package library

import (
	"fmt"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/freelist"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// oneDNN is the matrix product of oneDNN 2.x or 3.x: the function dnnl_sgemm,
// which both have with the same signature (dnnl.h, row-major).
type oneDNN struct {
	lib     *dynlib.Library
	major   int32
	version string
	runtime string
	fn      uintptr
	args    freelist.List[sgemmArgs]
	// synchronous is false for builds whose primitives run in the background, as
	// those for SYCL do; dnnl_sgemm never does.
	synchronous bool
	half        half
}

// sgemmArgs is what callSgemm hands to dnnl_sgemm. It lives on the heap, since
// a stack may move; the layout is known to the assembly of call_amd64.s.
type sgemmArgs struct {
	fn             uintptr        // 0
	transA, transB uintptr        // 8, 16: 'N' or 'T'
	m, n, k        int            // 24, 32, 40
	a              unsafe.Pointer // 48
	lda            int            // 56
	b              unsafe.Pointer // 64
	ldb            int            // 72
	c              unsafe.Pointer // 80
	ldc            int            // 88
	alpha, beta    float32        // 96, 100
	status         uintptr        // 104
	// self is the argument list of the call: one that the call made itself
	// would be allocated each time.
	self [1]uintptr
}

// oneDNNNames are the files to look for: version 3 first, then 2.
var oneDNNNames = []string{"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so", "libdnnl.3.dylib", "libdnnl.dylib"}

// dnnlRuntimes names the values of dnnl_version_t.cpu_runtime (dnnl_types.h).
var dnnlRuntimes = map[uint32]string{1: "sequential", 2: "OpenMP", 4: "TBB", 8: "threadpool", 0x200: "SYCL"}

// loadOneDNN makes a backend of a loaded library.
func loadOneDNN(lib *dynlib.Library) (gemm.Backend, error) {
	fn, err := lib.Func("dnnl_sgemm")
	if err != nil {
		return nil, err
	}
	ver, err := lib.Func("dnnl_version")
	if err != nil {
		return nil, err
	}
	// dnnl_version_t of dnnl_types.h.
	type version struct {
		major, minor, patch int32
		_                   unsafe.Pointer // hash of the source
		cpuRuntime          uint32
	}
	r := dynlib.Call(ver)
	v := *(**version)(unsafe.Pointer(&r))
	if v == nil || v.major < 2 || v.major > 3 {
		return nil, fmt.Errorf("%s is not oneDNN 2 or 3", lib.File)
	}
	limitTBB(lib)
	d := &oneDNN{lib: lib, fn: fn, major: v.major, runtime: dnnlRuntimes[v.cpuRuntime]}
	d.synchronous = v.cpuRuntime < 0x100 && d.runtime != ""
	d.version = fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
	d.args.Make = func() *sgemmArgs { return new(sgemmArgs) }
	return d, nil
}

func (d *oneDNN) Info() (version, file string) {
	return d.version + " (" + d.runtime + ")", d.lib.Path(d.fn)
}

// SGEMM implements gemm.Backend.
func (d *oneDNN) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	s := d.args.Take()
	s.fn, s.transA, s.transB = d.fn, transLetter(transA), transLetter(transB)
	s.m, s.n, s.k, s.lda, s.ldb, s.ldc = m, n, k, lda, ldb, ldc
	s.a, s.b, s.c = unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])
	s.alpha, s.beta = alpha, beta
	callSgemm(s)
	status := s.status
	s.a, s.b, s.c = nil, nil, nil
	d.args.Give(s)
	if int32(status) != 0 {
		panic(fmt.Sprintf("kernel: dnnl_sgemm refused a %d x %d x %d product (status %d)", m, n, k, int32(status)))
	}
}

// tbbControl is tbb::global_control (oneTBB, global_control.h), which TBB keeps a
// pointer to: the values stay for the life of the program.
type tbbControl struct {
	value     uintptr
	_         uintptr
	parameter int32 // 0 is max_allowed_parallelism
}

var tbbControls []*tbbControl

// limitTBB tells a oneDNN that was built on TBB to use the calling thread alone.
// Unlike OpenMP, TBB has no variable for that. Builds without TBB have no such
// function, also among the libraries that they depend on.
func limitTBB(lib *dynlib.Library) {
	create, err := lib.Func("_ZN3tbb6detail2r16createERNS0_2d114global_controlE")
	if err != nil {
		return
	}
	c := &tbbControl{value: 1}
	tbbControls = append(tbbControls, c)
	dynlib.Call(create, uintptr(unsafe.Pointer(c)))
}

// transLetter is the letter that stands for a transposed or plain operand.
func transLetter(trans bool) uintptr {
	if trans {
		return 'T'
	}
	return 'N'
}
