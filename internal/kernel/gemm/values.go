package gemm

// Values returns n values in [-1, 1) from a fixed sequence, of which products are tried and measured.
func Values(n int, seed uint32) []float32 {
	out := make([]float32, n)
	for i := range out {
		seed = seed*1664525 + 1013904223 // Numerical Recipes, section 7.1
		out[i] = float32(int32(seed)) / (1 << 31)
	}
	return out
}
