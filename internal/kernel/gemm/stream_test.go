//go:build amd64 || arm64

package gemm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// The blocking for a large level-2 cache computes what the one for a small cache does, to the bit: with rows in place and copied (a stride of
// 4 KiB), more rows than tiles, and several blocks.
func TestSingleTiles(t *testing.T) {
	top := cpu.Level()
	defer cpu.SetLevel(top)
	for _, level := range []string{cpu.AVX512, cpu.AVX2} {
		cpu.SetLevel(level)
		single, grouped := New(), New()
		if single == nil {
			t.Skip("no instructions for tiles on this processor")
		}
		single.blocking, grouped.blocking = forFloat(2<<20), forFloat(1<<20)
		if !single.single || grouped.single {
			t.Fatal("blockings: want single tiles for 2 MiB, groups for 1 MiB")
		}
		r := rand.New(rand.NewPCG(1, 2))
		fill := func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = r.Float32() - 0.5
			}
			return x
		}
		for _, s := range []struct{ m, n, k, lda int }{
			{113, 160, 200, 200}, {240, 129, 64, 1024}, {131, 800, 256, 257}, {200, 131, 384, 384}, {115, 140, 300, 3072}, {113, 136, 900, 1024},
		} {
			p := Product{M: s.m, N: s.n, K: s.k, Alpha: 1, LDC: s.n, Bias: fill(s.n),
				A: Matrix{F32: fill(s.m * s.lda), LD: s.lda}, B: Matrix{F32: fill(s.k * s.n), LD: s.n}}
			want, got := p, p
			want.C, got.C = make([]float32, s.m*s.n), make([]float32, s.m*s.n)
			grouped.Multiply(&want)
			single.Multiply(&got)
			t.Run(fmt.Sprintf("%s/%dx%dx%d", level, s.m, s.n, s.k), func(t *testing.T) {
				if !slices.Equal(got.C, want.C) {
					t.Error("other bits than in groups")
				}
			})
		}
	}
}
