package similarity

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestSimilarityFuzz compares random shapes, with and without queue and column
// count, with the definition and with finite differences.
func TestSimilarityFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for i := range 32 {
		b, n, q, width := 1+r.IntN(5), 1+r.IntN(5), 0, 1+r.IntN(6)
		in := []optest.Input{optest.F32s(r, "f", b, width), optest.F32s(r, "keys", n, width)}
		rows := append([]float32(nil), in[1].Data.([]float32)...)
		queueAt, colsAt := -1, -1
		if i&1 != 0 {
			q = 1 + r.IntN(7)
			queueAt = len(in)
			in = append(in, optest.F32s(r, "queue", q, width))
			rows = append(rows, in[queueAt].Data.([]float32)...)
		}
		cols := n + q
		if i&2 != 0 {
			cols = r.IntN(n + q + 1)
			colsAt = len(in)
			in = append(in, optest.I32s("cols", []int32{int32(cols)}))
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			var queue, count *gorgonia.Node
			if queueAt >= 0 {
				queue = ns[queueAt]
			}
			if colsAt >= 0 {
				count = ns[colsAt]
			}
			return Similarity(ns[0], ns[1], queue, count)
		}
		want := make([]float32, b*(n+q))
		for i := range b {
			for j := range cols {
				for k := range width {
					want[i*(n+q)+j] += in[0].Data.([]float32)[i*width+k] * rows[j*width+k]
				}
			}
		}
		optest.Near(t, "similarity", optest.Eval(t, build, in...).F32, want, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-1, 1e-3, in...)
		if t.Failed() {
			t.Fatalf("case %d: b %d, n %d, q %d, width %d, cols %d", i, b, n, q, width, cols)
		}
	}
}

func TestSimilarityErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	in := []optest.Input{optest.F32s(r, "f", 2, 3), optest.F32s(r, "keys", 4, 3), optest.F32s(r, "other", 4, 2), optest.I32s("cols", []int32{5})}
	_, ns := optest.Nodes(in)
	optest.BuildError(t, "width", "want f (B, C)", func() { Similarity(ns[0], ns[2], nil, nil) })
	optest.BuildError(t, "queue", "queue must have shape (Q, 3)", func() { Similarity(ns[0], ns[1], ns[2], nil) })
	optest.BuildError(t, "cols", "cols must be a scalar", func() { Similarity(ns[0], ns[1], nil, ns[2]) })
	g, ns := optest.Nodes(in)
	m := optest.Machine(t, g, ns, in, Similarity(ns[0], ns[1], nil, ns[3]))
	check.Error(t, m.RunAll(), "cols is 5: want [0, 4]")
}
