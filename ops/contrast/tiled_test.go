package contrast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// buildTiled is Tiled of nodes x, y and labels.
func buildTiled(both bool) func(ns gorgonia.Nodes) *gorgonia.Node {
	return func(ns gorgonia.Nodes) *gorgonia.Node { return Tiled(ns[0], ns[1], ns[2], both) }
}

// TestTiledGolden compares losses and gradients with torch's, from tools/goldens/tiled.py.
func TestTiledGolden(t *testing.T) {
	for name, c := range optest.TorchCases(t, "tiled.json") {
		c.Check(t, 2e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
			return Tiled(get("images"), get("texts"), get("labels"), name != "rows")
		}, map[string]string{"images": "dimages", "texts": "dtexts"})
	}
}

// tiledInputs are features whose products have a standard deviation of steep, and their pairs.
func tiledInputs(rows, cols, width int, steep float64) []optest.Input {
	r := rand.New(rand.NewPCG(3, uint64(rows*cols)))
	x, y := optest.F32s(r, "x", rows, width), optest.F32s(r, "y", cols, width)
	for i := range x.Floats() {
		x.Floats()[i] *= float32(steep / math.Sqrt(float64(width)))
	}
	labels := make([]int32, rows)
	for i, l := range r.Perm(cols)[:rows] {
		labels[i] = int32(l)
	}
	return []optest.Input{x, y, optest.I32s("labels", labels, rows)}
}

// naiveTiled is the loss by the definition, with its gradients.
func naiveTiled(in []optest.Input, both bool) (loss float64, dx, dy []float32) {
	x, y, labels := in[0].Floats(), in[1].Floats(), in[2].Data.([]int32)
	b, n, w := in[0].Shape[0], in[1].Shape[0], in[0].Shape[1]
	s, p := make([]float64, b*n), make([]float64, b*n)
	for i := range b {
		for j := range n {
			for k := range w {
				s[i*n+j] += float64(x[i*w+k]) * float64(y[j*w+k])
			}
		}
	}
	share := 1 / float64(b)
	if both {
		share /= 2
	}
	one := func(count, length, step, next int) {
		for i := range count {
			top, sum := math.Inf(-1), 0.
			for j := range length {
				top = max(top, s[i*step+j*next])
			}
			for j := range length {
				sum += math.Exp(s[i*step+j*next] - top)
			}
			loss += share * (top + math.Log(sum))
			for j := range length {
				p[i*step+j*next] += share * math.Exp(s[i*step+j*next]-top) / sum
			}
		}
	}
	one(b, n, n, 1)
	if both {
		one(n, b, 1, n)
	}
	for i, l := range labels {
		loss -= s[i*n+int(l)] / float64(b)
		p[i*n+int(l)] -= 1 / float64(b)
	}
	dx = optest.Sums(b, w, n, func(i, k, j int) float64 { return p[i*n+j] * float64(y[j*w+k]) })
	dy = optest.Sums(n, w, b, func(j, k, i int) float64 { return p[i*n+j] * float64(x[i*w+k]) })
	return loss, dx, dy
}

// TestTiled: sizes around those of tiles and strips, of soft and of steep logits, have the loss and the gradients of the
// definition.
func TestTiled(t *testing.T) {
	for _, c := range []struct {
		rows, cols, width int
		both              bool
	}{{1, 1, 1, true}, {7, 7, 3, true}, {300, 300, 5, true}, {tileRows + 1, tileRows + 1, 4, true}, {tileCols + 3, tileCols + 3, 2, true}, {3, tileCols + tileStrip + 1, 6, false}, {tileRows + 5, 2*tileCols - 1, 2, false}} {
		for _, steep := range []float64{1, 30} {
			t.Run(fmt.Sprintf("%v %v", c, steep), func(t *testing.T) {
				in := tiledInputs(c.rows, c.cols, c.width, steep)
				want, dx, dy := naiveTiled(in, c.both)
				got := optest.Eval(t, buildTiled(c.both), in...).F32[0]
				if math.Abs(float64(got)-want) > 1e-6*max(1, want, steep) {
					t.Errorf("loss %v, want %v", got, want)
				}
				grads, _ := optest.Gradients(t, buildTiled(c.both), []int{0, 1}, in...)
				optest.Near(t, "dx", grads[0], dx, 1e-5*steep)
				optest.Near(t, "dy", grads[1], dy, 1e-5*steep)
			})
		}
	}
	optest.CheckGrad(t, buildTiled(true), []int{0, 1}, 1e-2, 2e-3, tiledInputs(6, 6, 3, 1)...)
	optest.CheckGrad(t, buildTiled(false), []int{0, 1}, 1e-2, 2e-3, tiledInputs(4, 6, 3, 1)...)
}

// TestTiledRefuses: what cannot be a pair is named.
func TestTiledRefuses(t *testing.T) {
	in := tiledInputs(4, 6, 3, 1)
	optest.BuildError(t, "more columns than rows", "as many columns as rows (got 6 and 4)", func() {
		_, ns := optest.Nodes(in)
		Tiled(ns[0], ns[1], ns[2], true)
	})
	in[2].Data.([]int32)[1] = 6
	optest.RunError(t, "label 6 of row 1: want 0 to 5", buildTiled(false), in...)
}

// tiledCases are calls of several tiles.
func tiledCases() (cases []optest.Case) {
	for _, both := range []bool{true, false} {
		rows := tileRows + 3
		if both {
			rows = tileCols + 5
		}
		cases = append(cases, optest.Case{Name: fmt.Sprintf("tiled, both=%t", both), Inputs: tiledInputs(rows, tileCols+5, 8, 1),
			WRT: []int{0, 1}, Build: buildTiled(both)})
	}
	return cases
}

// BenchmarkContrast compares Tiled with CrossEntropy of all logits, forward and backward.
func BenchmarkContrast(b *testing.B) {
	for _, n := range []int{256, 1024, 4096, 8192} {
		for _, width := range []int{64, 256} {
			in := tiledInputs(n, n, width, 3)
			for name, build := range map[string]func(ns gorgonia.Nodes) *gorgonia.Node{
				"tiled": buildTiled(true),
				"whole": func(ns gorgonia.Nodes) *gorgonia.Node {
					s := similarity.Similarity(ns[0], ns[1], nil, nil)
					rows := CrossEntropy(CrossEntropyArgs{Logits: s, Labels: ns[2]})
					return gorgonia.Must(gorgonia.Add(rows, CrossEntropy(CrossEntropyArgs{Logits: layout.Transpose(s), Labels: ns[2]})))
				},
			} {
				b.Run(fmt.Sprintf("%s/%dx%d", name, n, width), func(b *testing.B) {
					optest.Benchmark(b, optest.Engine, optest.Case{Inputs: in, WRT: []int{0, 1}, Build: build})
				})
			}
		}
	}
}
