package library

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// half says whether a oneDNN multiplies bfloat16, which is found out when it is
// first asked.
type half struct {
	once  sync.Once
	cache *matmulCache
	err   error
}

// SupportsBF16 reports whether BGEMM computes with the processor's bfloat16
// instructions. The first call tries a few products.
func (d *oneDNN) SupportsBF16() bool {
	d.half.once.Do(func() {
		if runtime.GOARCH == "amd64" && !cpu.HasBF16 {
			d.half.err = errors.New("the processor has no bfloat16 instructions, or GEOALIGN_CPU forbids them")
			return
		}
		if !d.synchronous {
			d.half.err = errors.New("this build of oneDNN returns before a product is done")
			return
		}
		if d.half.err = d.openMatmul(); d.half.err == nil {
			d.half.err = selfTestHalf(d.half.cache)
		}
	})
	return d.half.err == nil
}

// openMatmul finds the functions of matmul primitives and tries one.
func (d *oneDNN) openMatmul() error {
	api, err := newDNNLMatmul(d.lib, d.major)
	if err != nil {
		return err
	}
	name, err := api.implementation(matmulKey{m: 64, n: 64, k: 64, lda: 64, ldb: 64, ldc: 64, alpha: floatOne})
	if err != nil {
		return fmt.Errorf("no product in bfloat16: %w", err)
	}
	if isReference(name) {
		return fmt.Errorf("only a reference product in bfloat16 (%s)", name)
	}
	d.half.cache = &matmulCache{api: api, limit: matmulLimit, entries: map[matmulKey]*matmul{}}
	return nil
}

// BGEMM computes C = alpha*op(A)*op(B) + beta*C + bias as Engine.Multiply says:
// operands bfloat16, sums and C float32; bias (n) may be nil. Many goroutines may
// call it at once. It allocates nothing when the product was computed before.
func (d *oneDNN) BGEMM(transA, transB bool, m, n, k int, alpha float32, a []uint16, lda int, b []uint16, ldb int,
	beta float32, c []float32, ldc int, bias []float32) {
	if !d.SupportsBF16() || !d.half.cache.multiply(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, bias) {
		d.widened(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, bias)
	}
}

// widened is BGEMM by the product of float32.
func (d *oneDNN) widened(transA, transB bool, m, n, k int, alpha float32, a []uint16, lda int, b []uint16, ldb int,
	beta float32, c []float32, ldc int, bias []float32) {
	x, y := make([]float32, len(a)), make([]float32, len(b))
	vector.FromBF16(x, a)
	vector.FromBF16(y, b)
	d.SGEMM(transA, transB, m, n, k, alpha, x, lda, y, ldb, beta, c, ldc)
	if bias != nil {
		addRows(m, n, c, ldc, bias)
	}
}

// addRows adds x (n) to each row of C.
func addRows(m, n int, c []float32, ldc int, x []float32) {
	for i := range m {
		row := c[i*ldc:][:n]
		vector.Add(row, row, x)
	}
}

// selfTestHalf compares h with the plain product on a few small shapes.
func selfTestHalf(h *matmulCache) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("self-test in bfloat16: %v", v)
		}
	}()
	for _, s := range [][3]int{{1, 1, 1}, {17, 33, 9}, {40, 70, 50}} {
		for t := range 8 {
			if !halfAgrees(h, t&1 != 0, t&2 != 0, t&4 != 0, s[0], s[1], s[2]) {
				return errors.New("self-test in bfloat16: wrong result")
			}
		}
	}
	return nil
}

// halfAgrees compares one product with that of the plain kernel on the same
// operands, with a bias and the sum, or with neither.
func halfAgrees(h *matmulCache, transA, transB, full bool, m, n, k int) bool {
	lda, ldb, ldc, x, y := operands(transA, transB, m, n, k)
	bias := Values(n, 4)
	got, want := Values(m*ldc, 3), Values(m*ldc, 3)
	a, w := make([]uint16, len(x)), make([]uint16, len(y))
	vector.ToBF16(a, x)
	vector.ToBF16(w, y)
	vector.FromBF16(x, a)
	vector.FromBF16(y, w)
	alpha, beta := float32(0.5), float32(0)
	if full {
		alpha, beta = 1, 1
	} else {
		bias = nil
	}
	if !h.multiply(transA, transB, m, n, k, alpha, a, lda, w, ldb, beta, got, ldc, bias) {
		return true // BGEMM does without the primitive
	}
	gemm.Plain{}.SGEMM(transA, transB, m, n, k, alpha, x, lda, y, ldb, beta, want, ldc)
	for i := range want {
		if bias != nil && i%ldc < n {
			want[i] += bias[i%ldc]
		}
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-5*float64(k+1)) {
			return false
		}
	}
	return true
}
