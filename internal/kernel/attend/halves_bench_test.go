package attend_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// BenchmarkHalves gives the time of a head of self-attention on operands that are stored as bfloat16, in the cache and not,
// by one thread.
func BenchmarkHalves(b *testing.B) {
	const width, heads = 64, 6
	const d = width * heads
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range []struct{ seqs, l int }{{4, 30}, {4, 65}, {1, 197}, {128, 30}, {32, 65}, {32, 197}} {
		e, err := kernel.New(kernel.Options{Threads: 1, Precision: "bf16"})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(e.Close)
		qkv, dqkv, out := make([]uint16, s.seqs*s.l*3*d), make([]uint16, s.seqs*s.l*3*d), make([]uint16, s.seqs*s.l*d)
		for i := range qkv {
			qkv[i] = uint16(r.IntN(2)<<15 | 0x3f00 + r.IntN(0x80))
		}
		copy(out, qkv)
		lse, dk, dv := make([]float32, s.l), make([]float32, s.l*width), make([]float32, s.l*width)
		part := func(x []uint16, n, h, part, ld int) gemm.Matrix {
			return gemm.Matrix{BF16: x[n*s.l*ld+part*d+h*width:], LD: ld}
		}
		for _, backward := range []bool{false, true} {
			z := attend.Sizes{Keys: s.l, Width: width, Queries: attend.BlockSize(s.l, s.l), Backward: backward}
			a := e.NewAttention(z)
			a.Use(make([]float32, z.Scratch()))
			head := func(n, h int) {
				q, dq, y := part(qkv, n, h, 0, 3*d), part(dqkv, n, h, 0, 3*d), part(out, n, h, 0, d)
				a.SetKeys(part(qkv, n, h, 1, 3*d), part(qkv, n, h, 2, 3*d), s.l)
				for i := 0; i < s.l; i += z.Queries {
					block := attend.Block{N: min(z.Queries, s.l-i), Q: q.From(i * q.LD), LSE: lse[i:], Scale: 1, Out: y.From(i * y.LD)}
					if !backward {
						a.Forward(&block)
						continue
					}
					a.Backward(&block, &attend.Grads{DOut: block.Out, DQ: dq.From(i * dq.LD), DK: dk, DV: dv, LDDKV: width, Add: i > 0})
				}
			}
			name := "forward"
			if backward {
				name = "backward"
			}
			b.Run(fmt.Sprintf("%dx%dx%d/%s", s.seqs, s.l, width, name), func(b *testing.B) {
				for b.Loop() {
					for i := range s.seqs * heads {
						head(i/heads, i%heads)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*s.seqs*heads), "ns/head")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
