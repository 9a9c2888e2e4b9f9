package kernel

import (
	"fmt"
	"runtime"
	"time"
)

// Options selects how an Engine computes.
type Options struct {
	// Backend is "auto" (oneDNN, then OpenBLAS, then builtin), "onednn",
	// "openblas", "mkl", "builtin" or "plain" (no assembly at all). Empty means "auto".
	Backend string
	// Threads is the number of threads; 0 means all processors.
	Threads int
}

// Engine multiplies matrices and splits work over a fixed number of threads.
// One goroutine at a time may use it.
type Engine struct {
	threads  int
	backend  gemmBackend
	small    gemmBackend // for small serial products; nil: backend does them too
	info     BackendInfo
	warnings []string
	pool     *pool
	product  product
}

// product holds the arguments of the Gemm in progress, so that no closure has to
// be made for it.
type product struct {
	transA, transB bool
	alongN         bool
	m, n, k        int
	alpha, beta    float32
	a, b, c        []float32
	lda, ldb, ldc  int
	part           func(worker, lo, hi int)
}

// New starts the worker threads and loads the matrix library. A backend that is
// asked for by name and cannot be used is an error that says what to install.
func New(o Options) (*Engine, error) {
	if o.Threads < 0 || o.Threads > 1024 {
		return nil, fmt.Errorf("kernel: threads must be in [0, 1024] (got %d): 0 means all processors", o.Threads)
	}
	l, warnings, err := choose(o.Backend)
	if err != nil {
		return nil, err
	}
	e := &Engine{threads: o.Threads, backend: l.backend, info: l.info, warnings: warnings}
	if e.threads == 0 {
		e.threads = runtime.NumCPU()
	}
	if l.info.Name == backendOneDNN && (hasAVX2FMA || hasAVX512) {
		e.small = newBuiltin()
	}
	e.pool = newPool(e.threads)
	e.product.part = e.multiplyPart
	return e, nil
}

// Close stops the worker threads. The engine must not be used afterwards.
func (e *Engine) Close() {
	if e.pool != nil {
		e.pool.close()
		e.pool = nil
	}
}

// Threads returns the number of threads that For splits work over.
func (e *Engine) Threads() int { return e.threads }

// Backend returns the name of the backend in use, as Options.Backend takes it.
func (e *Engine) Backend() string { return e.info.Name }

// Warnings tells of libraries that were found but could not be used.
func (e *Engine) Warnings() []string { return e.warnings }

// Describe names the backend, its version and file, the instruction set and the
// threads, and warns of libraries that were found but could not be used.
func (e *Engine) Describe() string {
	s := e.info.Name
	if e.info.Version != "" {
		s += " " + e.info.Version
	}
	if e.info.File != "" {
		s += " from " + e.info.File
	}
	s += fmt.Sprintf(", %s, %d threads", cpuLevel(), e.threads)
	for _, w := range e.warnings {
		s += "; " + w
	}
	return s
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
func (e *Engine) Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	alongN, chunks, step := splitProduct(m, n, k, e.threads)
	if chunks == 1 || alpha == 0 {
		e.GemmSerial(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	checkProduct(transA, transB, m, n, k, a, lda, b, ldb, c, ldc)
	p := &e.product
	p.transA, p.transB, p.alongN = transA, transB, alongN
	p.m, p.n, p.k, p.alpha, p.beta = m, n, k, alpha, beta
	p.a, p.b, p.c, p.lda, p.ldb, p.ldc = a, b, c, lda, ldb, ldc
	items := m
	if alongN {
		items = n
	}
	e.pool.run(items, step, chunks, p.part)
	p.a, p.b, p.c = nil, nil, nil
}

// multiplyPart computes rows (or columns) lo to hi of the product in progress.
func (e *Engine) multiplyPart(_, lo, hi int) {
	p := &e.product
	a, b, c, m, n := p.a, p.b, p.c, p.m, p.n
	if p.alongN {
		n = hi - lo
		c = c[lo:]
		if p.transB {
			b = b[lo*p.ldb:]
		} else {
			b = b[lo:]
		}
	} else {
		m = hi - lo
		c = c[lo*p.ldc:]
		if p.transA {
			a = a[lo:]
		} else {
			a = a[lo*p.lda:]
		}
	}
	e.backend.sgemm(p.transA, p.transB, m, n, p.k, p.alpha, a, p.lda, b, p.ldb, p.beta, c, p.ldc)
}

// GemmSerial is Gemm on the calling thread alone, for use inside For.
func (e *Engine) GemmSerial(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	checkProduct(transA, transB, m, n, k, a, lda, b, ldb, c, ldc)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 || alpha == 0 {
		for i := range m {
			scaleRow(c[i*ldc:i*ldc+n], beta)
		}
		return
	}
	backend := e.backend
	if e.small != nil && m*n*k <= smallProduct {
		backend = e.small
	}
	backend.sgemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// smallProduct is the number of multiplications up to which the built-in kernel
// beats a call of oneDNN: the products of an attention head (65 x 65 x 64 and the
// like gained 10 to 25 % when measured).
const smallProduct = 1 << 19

// A product is split when each part keeps at least this many multiplications:
// some tens of microseconds, well above the cost of waking a thread.
const leastPart = 1 << 20

// Parts begin at multiples of these, so that the tiles of the libraries' kernels
// stay whole.
const (
	rowStep    = 8
	columnStep = 64
)

// splitProduct says how a product is split over threads: along n or m, in how
// many parts, and at multiples of what. It depends on its arguments alone. The
// sum over k is never split, so that each element has one fixed order of sums.
func splitProduct(m, n, k, threads int) (alongN bool, chunks, step int) {
	work := m * n * k
	chunks = min(threads, work/leastPart)
	if chunks <= 1 {
		return false, 1, 1
	}
	// Along the longer side, in units of the step, each part reads least twice.
	rows, columns := (m+rowStep-1)/rowStep, (n+columnStep-1)/columnStep
	if m >= n && rows >= chunks || columns < chunks {
		if rows < 2 {
			return false, 1, 1
		}
		return false, min(chunks, rows), rowStep
	}
	return true, chunks, columnStep
}

// checkProduct panics if a slice is too short for the product or a stride is
// shorter than its row: the libraries would write outside the slice.
func checkProduct(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	if m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("kernel: gemm: negative size (got m %d, n %d, k %d)", m, n, k))
	}
	if transA {
		checkMatrix("A", k, m, len(a), lda)
	} else {
		checkMatrix("A", m, k, len(a), lda)
	}
	if transB {
		checkMatrix("B", n, k, len(b), ldb)
	} else {
		checkMatrix("B", k, n, len(b), ldb)
	}
	checkMatrix("C", m, n, len(c), ldc)
}

func checkMatrix(name string, rows, columns, length, ld int) {
	if rows == 0 || columns == 0 {
		return
	}
	if ld < columns || length < (rows-1)*ld+columns {
		panic(fmt.Sprintf("kernel: gemm: %s is %d x %d with stride %d, which does not fit (slice of %d)", name, rows, columns, ld, length))
	}
}

// MeasureGEMM multiplies m x k by k x n matrices on e for about d and returns the
// billions of floating-point operations a second, 2*m*n*k for each product.
func MeasureGEMM(e *Engine, m, n, k int, d time.Duration) (gflops float64) {
	a, b, c := testValues(m*k, 1), testValues(k*n, 2), make([]float32, m*n)
	e.Gemm(false, false, m, n, k, 1, a, k, b, n, 0, c, n)
	count, start := 0, time.Now()
	for count == 0 || time.Since(start) < d {
		e.Gemm(false, false, m, n, k, 1, a, k, b, n, 0, c, n)
		count++
	}
	return 2 * float64(m) * float64(n) * float64(k) * float64(count) / time.Since(start).Seconds() / 1e9
}
