package objectives

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
)

// judged is a connector whose logits for text i and image j are in a table.
func judged(n *bench, table []float32, b int) func(texts, images *gorgonia.Node) *gorgonia.Node {
	return func(texts, images *gorgonia.Node) *gorgonia.Node {
		// What a real connector computes is looked up here: run the indices first.
		x := n.run(texts, images)
		logits := make([]float32, 2*len(x[0].I32))
		for r, i := range x[0].I32 {
			logits[2*r+1] = table[int(i)*b+int(x[1].I32[r])]
		}
		return n.floats("judged", logits, len(x[0].I32), 2)
	}
}

// TestRelabellingAgainstOracle compares random batches, with and without ids, with loops
// over all pairs.
func TestRelabellingAgainstOracle(t *testing.T) {
	const above, below = .8, .5
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		b, extra := 2+r.IntN(6), r.IntN(4)
		n := newBench(t)
		rows := func() []float32 {
			x := make([]float32, b*(b+extra))
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			return x
		}
		i2t, t2i, table := rows(), rows(), make([]float32, b*b)
		for i := range table {
			table[i] = float32(3 * r.NormFloat64())
		}
		ids := make([]int32, b)
		own, ones := make([]int32, b), make([]int32, b)
		for i := range ids {
			ids[i], own[i], ones[i] = int32(i), int32(i), 1
			if seed%2 == 1 {
				ids[i] = int32(r.IntN(3))
			}
		}
		m := Relabelling{Above: above, Below: below, Judge: judged(n, table, b)}
		if seed%2 == 1 {
			m.IDs = n.ints("ids", ids...)
		}
		got := m.Build(n.floats("i2t", i2t, b, b+extra), n.floats("t2i", t2i, b, b+extra), n.ints("own", own...))
		out := n.run(got.Texts.Index, got.Images.Index, got.Labels(n.ints("ones", ones...)), got.Texts.Positive, got.Images.Positive, got.Positives(), got.Replaced())

		labels := slices.Clone(ones)
		var index, positive [2][]int32
		var positives, replaced float64
		for side, s := range [][]float32{i2t, t2i} {
			for i := range b {
				var best []int // by score
				for j := range b {
					if ids[j] != ids[i] {
						best = append(best, j)
					}
				}
				slices.SortStableFunc(best, func(j, k int) int {
					if s[i*(b+extra)+j] > s[i*(b+extra)+k] {
						return -1
					}
					return 1
				})
				pick, label, pos := i, int32(-100), int32(-1)
				if len(best) > 0 {
					x := table[best[0]*b+i] // text best, image i
					if side == 1 {
						x = table[i*b+best[0]]
					}
					switch p := 1 / (1 + math.Exp(-float64(x))); {
					case p > above:
						pick, label, pos = best[0], 1, int32(best[0])
						positives++
					case p < below:
						pick, label = best[0], 0
					default:
						replaced++
						if len(best) > 1 {
							pick, label = best[1], 0
						}
					}
				}
				index[side], positive[side] = append(index[side], int32(pick)), append(positive[side], pos)
				labels = append(labels, label)
			}
		}
		// Labels of images that were picked for texts come first.
		labels = slices.Concat(labels[:b], labels[2*b:], labels[b:2*b])
		for k, want := range [][]int32{index[0], index[1], labels, positive[0], positive[1]} {
			if !slices.Equal(out[k].I32, want) {
				t.Fatalf("seed %d, result %d: got %v, want %v", seed, k, out[k].I32, want)
			}
		}
		near(t, "positives", float64(out[5].F32[0]), positives, 0)
		near(t, "replaced", float64(out[6].F32[0]), replaced, 0)
	}
}
