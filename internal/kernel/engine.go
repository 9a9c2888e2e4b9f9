package kernel

import (
	"fmt"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/freelist"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// Options selects how an Engine computes.
type Options struct {
	// Backend is Auto, Builtin or Plain; empty means Auto.
	Backend string
	// Threads is the number of threads; 0 means all processors that this process may use, see cpu.Available.
	Threads int
	// Precision of the matrix products that ask the engine: "" or "fp32",
	// "bf16", where operands are rounded to bfloat16 and sums are float32, or
	// "int8", where products by weights that were packed (PackWeights) are those of gemm.Int8 and others float32.
	Precision string
}

// Engine multiplies matrices and splits work over a fixed number of threads.
// One goroutine at a time may use it.
type Engine struct {
	threads  int
	backend  backend
	warnings []string
	pool     *pool

	bf16       bool
	float      *gemm.Tiled // nil where the backend multiplies
	tiles      *gemm.Tiled // of bfloat16; nil where the processor has no instructions for it
	amx        *gemm.AMX   // likewise
	int8       *gemm.Int8  // nil in other precisions
	job        job
	conversion conversion
	scratch    freelist.List[operandScratch]
	device     Device
}

// Names of the precisions, as Options.Precision takes them.
const (
	precisionFP32 = "fp32"
	precisionBF16 = "bf16"
	precisionInt8 = "int8"
)

// New starts the worker threads and finds what multiplies.
func New(o Options) (*Engine, error) {
	if o.Threads < 0 || o.Threads > 1024 {
		return nil, fmt.Errorf("kernel: threads must be in [0, 1024] (got %d): 0 means all processors", o.Threads)
	}
	switch o.Precision {
	case "", precisionFP32, precisionBF16, precisionInt8:
	default:
		return nil, fmt.Errorf("kernel: unknown precision %q: choose fp32, bf16 or int8", o.Precision)
	}
	if err := cpu.CheckEnvironment(); err != nil {
		return nil, err
	}
	b, warning, err := newBackend(o.Backend)
	if err != nil {
		return nil, err
	}
	e := &Engine{threads: o.Threads, backend: b, bf16: o.Precision == precisionBF16}
	if warning != "" {
		e.warnings = []string{warning}
	}
	if e.threads == 0 {
		e.threads = cpu.Available()
	}
	e.float, _ = b.Backend.(*gemm.Tiled)
	e.setBF16()
	if o.Precision == precisionInt8 {
		e.setInt8()
	}
	e.pool = newPool(e.threads)
	e.job.part, e.conversion.part = e.multiplyPart, e.convertPart
	e.scratch.Make = func() *operandScratch { return new(operandScratch) }
	return e, nil
}

// Close stops the worker threads. The engine must not be used afterwards.
func (e *Engine) Close() {
	if e.pool != nil {
		e.pool.close()
		e.pool = nil
	}
	if e.device != nil {
		_ = e.device.Close() // the process gives back what is left at worst
		e.device = nil
	}
}

// Threads returns the number of threads that For splits work over.
func (e *Engine) Threads() int { return e.threads }

// Backend returns the name of the backend in use.
func (e *Engine) Backend() string { return e.backend.name }

// BF16 reports whether the precision is bf16: then operations ask for products in
// bfloat16.
func (e *Engine) BF16() bool { return e.bf16 }

// Int8 reports whether the precision is int8.
func (e *Engine) Int8() bool { return e.int8 != nil }

// Warnings tells of a library that was found but could not be used, and of a
// precision that this processor only emulates.
func (e *Engine) Warnings() []string { return e.warnings }

// Describe names the backend, its version and file, the instruction set and the
// threads. See Warnings too.
func (e *Engine) Describe() string {
	s := e.backend.name
	if e.backend.version != "" {
		s += " " + e.backend.version
	}
	if e.backend.file != "" {
		s += " from " + e.backend.file
	}
	s += fmt.Sprintf(", %s, %d threads", cpu.Level(), e.threads)
	if e.bf16 {
		s += ", " + e.describeBF16()
	}
	if e.int8 != nil {
		s += ", " + e.describeInt8()
	}
	if e.device != nil {
		s = e.device.Describe() + "; host: " + s
	}
	return s
}

// NewAttention returns attention of one head in the engine's precision.
func (e *Engine) NewAttention(s attend.Sizes) *attend.Head {
	return attend.New(s, attend.Products{Plain: e.backend.name == Plain, BF16: e.bf16, Float: e.float,
		Tiles: e.tiles, AMX: e.amx})
}

// NewConvolution returns a convolution in float32, whatever the engine's precision.
func (e *Engine) NewConvolution(s convolve.Sizes) *convolve.Convolution {
	return convolve.New(e, e.float, s)
}

// For calls body on contiguous ranges that cover [0, n), on several threads at
// once, and returns when all are done. The split depends on n, grain (the least
// number of items worth a thread) and the thread count only. worker is in
// [0, Threads()) and no two concurrent calls share it. For allocates nothing;
// body should be made once by the caller, since a closure escapes. A panic of
// body comes out of For on the calling goroutine.
func (e *Engine) For(n, grain int, body func(worker, lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	chunks := min(e.threads, (n+grain-1)/grain)
	if chunks == 1 {
		body(0, 0, n)
		return
	}
	e.pool.run(n, 1, chunks, body)
}

// Gemm computes C = alpha*op(A)*op(B) + beta*C on all threads, where op
// transposes if asked: op(A) is m x k, op(B) is k x n, C is m x n, and lda, ldb,
// ldc are the row strides of A, B and C as stored. Must not be called inside For.
// With beta == 0, C is not read. A slice that is too short is a panic. C must not
// overlap A or B.
func (e *Engine) Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	e.Multiply(&gemm.Product{TransA: transA, TransB: transB, M: m, N: n, K: k, Alpha: alpha,
		A: gemm.Matrix{F32: a, LD: lda}, B: gemm.Matrix{F32: b, LD: ldb}, Beta: beta, C: c, LDC: ldc})
}

// GemmSerial is Gemm on the calling thread alone, for use inside For.
func (e *Engine) GemmSerial(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32,
	ldb int, beta float32, c []float32, ldc int) {
	e.MultiplySerial(&gemm.Product{TransA: transA, TransB: transB, M: m, N: n, K: k, Alpha: alpha,
		A: gemm.Matrix{F32: a, LD: lda}, B: gemm.Matrix{F32: b, LD: ldb}, Beta: beta, C: c, LDC: ldc})
}

// MeasureGEMM multiplies m x k by k x n matrices of float32 on e, in the precision
// of e, for about d and returns the billions of floating-point operations a second,
// 2*m*n*k for each product.
func MeasureGEMM(e *Engine, m, n, k int, d time.Duration) (gflops float64) {
	return MeasureProduct(e, &gemm.Product{M: m, N: n, K: k, Alpha: 1, BF16: e.bf16,
		A: gemm.Matrix{F32: gemm.Values(m*k, 1), LD: k},
		B: gemm.Matrix{F32: gemm.Values(k*n, 2), LD: n}, C: make([]float32, m*n), LDC: n}, d)
}

// MeasureProduct is MeasureGEMM for the product p. In int8 its B is packed before.
func MeasureProduct(e *Engine, p *gemm.Product, d time.Duration) (gflops float64) {
	if e.Int8() {
		p.Packed = e.PackWeights(p)
	}
	e.Multiply(p)
	count, start := 0, time.Now()
	for count == 0 || time.Since(start) < d {
		e.Multiply(p)
		count++
	}
	return 2 * float64(p.M) * float64(p.N) * float64(p.K) * float64(count) / time.Since(start).Seconds() / 1e9
}
