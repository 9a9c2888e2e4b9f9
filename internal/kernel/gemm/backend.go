package gemm

// Backend is one implementation of the matrix product. Many goroutines may
// call it at once; each call uses one thread. The engine has checked the
// arguments: m, n, k >= 1, alpha and the slices fit.
type Backend interface {
	// SGEMM computes C = alpha*op(A)*op(B) + beta*C as Engine.Gemm says.
	SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32,
		c []float32, ldc int)
	// Info gives the version and the file, empty where there is none.
	Info() (version, file string)
}

// HalfBackend is a backend that multiplies bfloat16: operands bfloat16, C and
// sums float32, otherwise as sgemm; bias (n) is added to each row unless nil.
type HalfBackend interface {
	// SupportsBF16 reports whether it is worth calling; it may test the library.
	SupportsBF16() bool
	BGEMM(transA, transB bool, m, n, k int, alpha float32, a []uint16, lda int, b []uint16, ldb int, beta float32,
		c []float32, ldc int, bias []float32)
}
