package gemm

// Backend is one implementation of the product of float32. Many goroutines may
// call it at once; each call uses one thread. The engine has checked the
// arguments: m, n, k >= 1, alpha and the slices fit.
type Backend interface {
	// SGEMM computes C = alpha*op(A)*op(B) + beta*C as Engine.Gemm says.
	SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32,
		c []float32, ldc int)
	// Info gives the version and the file, empty where there is none.
	Info() (version, file string)
}
