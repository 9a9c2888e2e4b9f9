package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
)

// amxEngine returns an engine of one thread whose products of bfloat16 are by AMX.
func amxEngine(t *testing.T) *Engine {
	t.Helper()
	if cpu.SetLevel(""); !cpu.HasAMX {
		t.Skip("this processor has no AMX, or the system does not allow it")
	}
	e, err := New(Options{Backend: Builtin, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// The blocks of gemm.AMX: several along each side, groups of a transposed A, sums that are cut along k.
func TestProductAMXBlocks(t *testing.T) {
	e := amxEngine(t)
	r := rand.New(rand.NewPCG(31, 32))
	for _, s := range []struct {
		transA, transB bool
		m, n, k        int
	}{
		{false, true, 9, 1100, 70}, {false, false, 33, 2060, 40}, {false, true, 18, 430, 1540}, {true, false, 20, 800, 1541},
		{true, true, 2060, 1030, 5}, {true, false, 160, 70, 660}, {false, false, 17, 49, 3100},
	} {
		for i, scalars := range [][2]float32{{1, 0}, {1, 1}, {-0.5, 0.25}, {1, 0}} {
			checkProduct(t, e, gemmtest.NewCase(r, gemmtest.Case{
				P:     gemm.Product{TransA: s.transA, TransB: s.transB, M: s.m, N: s.n, K: s.k, Alpha: scalars[0], Beta: scalars[1], BF16: true},
				HalfA: i&1 == 0, HalfB: i&2 != 0, Bias: i == 1, Gelu: i == 2,
			}))
		}
	}
}

// What a product leaves in the memory it worked in, here NaN in the last rows of a transposed A, does not reach the next one.
func TestProductAMXForgets(t *testing.T) {
	e := amxEngine(t)
	r := rand.New(rand.NewPCG(33, 34))
	product := func(k int) gemmtest.Case {
		return gemmtest.NewCase(r, gemmtest.Case{P: gemm.Product{TransA: true, M: 64, N: 40, K: k, Alpha: 1, BF16: true}, HalfA: true, HalfB: true})
	}
	bad := product(63)
	for i := range bad.P.A.BF16 {
		bad.P.A.BF16[i] = gemmtest.Half(float32(math.NaN()))
	}
	e.Multiply(&bad.P)
	checkProduct(t, e, product(33))
}
