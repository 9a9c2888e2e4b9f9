package nn

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// pair is rank 0 of two that have the same values.
type pair struct{ parallel.Single }

func (pair) Size() int { return 2 }

func (pair) Gather(dst, x []float32) ([]float32, error) { return append(append(dst, x...), x...), nil }

// TestDropoutShare: the ranks have the bits of the whole, of stacks whose shares lie side by side and of places.
func TestDropoutShare(t *testing.T) {
	const ranks, site, keep = 3, 4, .7
	key := optest.I32s("key", []int32{12345, -6789}, 2)
	for _, x := range []struct{ stacks, rows, cols int }{{1, 4, 70}, {2, 3, 32}, {3, 5, 7}, {1, 700, 9}} {
		words, per := MaskWords(x.cols), x.rows*MaskWords(x.cols)
		whole := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			return DropoutBits(ns[0], site, ranks*x.stacks*x.rows, x.cols, keep)
		}, key).I32
		for rank := range ranks {
			share := optest.I32s("share", []int32{int32(rank), ranks}, 2)
			got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
				return DropoutShare(ns[0], ns[1], nil, site, x.stacks*x.rows, x.stacks, x.cols, keep)
			}, key, share).I32
			for s := range x.stacks {
				if want := whole[(s*ranks+rank)*per:][:per]; !slices.Equal(got[s*per:][:per], want) {
					t.Errorf("%+v: rank %d has other bits in stack %d", x, rank, s)
				}
			}
		}
		places := []int32{2, 0, int32(ranks*x.stacks*x.rows/2 - 1)} // of two rows each
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			return DropoutShare(ns[0], ns[1], ns[2], site, 6, 1, x.cols, keep)
		}, key, optest.I32s("share", []int32{0, 1}, 2), optest.I32s("places", places, 3)).I32
		for i, p := range places {
			if !slices.Equal(got[2*i*words:][:2*words], whole[2*int(p)*words:][:2*words]) {
				t.Errorf("%+v: other bits at place %d", x, p)
			}
		}
	}
	_, ns := optest.Nodes([]optest.Input{key, optest.I32s("three", make([]int32, 3), 3)})
	for want, build := range map[string]func(){
		"key and share must have shape (2)": func() { DropoutShare(ns[0], ns[1], nil, 1, 4, 1, 4, .5) },
		"want stacks of equal size":         func() { DropoutShare(ns[0], ns[0], nil, 1, 4, 3, 4, .5) },
		"want places (M) of 4 rows":         func() { DropoutShare(ns[0], ns[0], ns[1], 1, 4, 1, 4, .5) },
	} {
		optest.BuildError(t, want, want, build)
	}
}

// TestBatchNormOfRanks: the rows of several ranks, one of which may have none that count, are normalised as those of one process, and
// have its gradients: those of gamma and beta are the sums over the ranks.
func TestBatchNormOfRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 35))
	const l, d = 3, 5
	gamma, beta := optest.F32s(r, "gamma", d), optest.F32s(r, "beta", d)
	for _, counts := range [][]int32{{3, 1, 2, 3}, {3, 2, 0, 0}} {
		x, w := optest.F32s(r, "x", 4*l, d), optest.F32s(r, "w", 4*l, d)
		for i := range x.Floats() {
			x.Floats()[i] += 100 * float32(i/(2*l*d)) // whose means differ
		}
		type result struct{ y, mean, variance, dx, dgamma, dbeta []float32 }
		run := func(g parallel.Group, from, rows int) (z result, err error) {
			in := []optest.Input{optest.In("x", []int{rows * l, d}, x.Floats()[from*l*d:][:rows*l*d]), gamma, beta,
				optest.I32s("lengths", counts[from:][:rows], rows), optest.In("w", []int{rows * l, d}, w.Floats()[from*l*d:][:rows*l*d])}
			graph, ns := optest.Nodes(in)
			y, mean, variance := BatchNorm(BatchNormArgs{X: ns[0], Gamma: ns[1], Beta: ns[2], Lengths: ns[3], Len: l, Eps: 1e-3, Group: g})
			grads, err := gorgonia.Grad(optest.Dot(y, ns[4]), ns[0], ns[1], ns[2])
			if err != nil {
				return z, err
			}
			outputs := append(gorgonia.Nodes{y, mean, variance}, grads...)
			m, err := exec.Compile(graph, exec.Config{Engine: optest.Engine, Outputs: outputs})
			if err != nil {
				return z, err
			}
			for i, x := range in {
				if err := m.SetInput(ns[i], x.Data); err != nil {
					return z, err
				}
			}
			if err := m.RunAll(); err != nil {
				return z, err
			}
			for i, to := range []*[]float32{&z.y, &z.mean, &z.variance, &z.dx, &z.dgamma, &z.dbeta} {
				v, err := m.Value(outputs[i])
				if err != nil {
					return z, err
				}
				*to = slices.Clone(v.F32)
			}
			return z, nil
		}
		want := check.Get(run(nil, 0, 4))(t)
		var got [2]result
		var errs [2]error
		var wg sync.WaitGroup
		for i, g := range paralleltest.Ranks(2) {
			wg.Go(func() { got[i], errs[i] = run(g, 2*i, 2) })
		}
		wg.Wait()
		check.OK(t, errors.Join(errs[:]...))
		optest.Near(t, "y", slices.Concat(got[0].y, got[1].y), want.y, 1e-5)
		optest.Near(t, "dx", slices.Concat(got[0].dx, got[1].dx), want.dx, 1e-5)
		for i := range got {
			optest.Near(t, "mean", got[i].mean, want.mean, 1e-6)
			optest.Near(t, "variance", got[i].variance, want.variance, 1e-5)
		}
		for j := range d {
			got[0].dgamma[j] += got[1].dgamma[j]
			got[0].dbeta[j] += got[1].dbeta[j]
		}
		optest.Near(t, "dgamma", got[0].dgamma, want.dgamma, 1e-5)
		optest.Near(t, "dbeta", got[0].dbeta, want.dbeta, 1e-5)
	}
	optest.RunError(t, "0 rows of the batches of all processes count", func(ns gorgonia.Nodes) *gorgonia.Node {
		y, _, _ := BatchNorm(BatchNormArgs{X: ns[0], Gamma: ns[1], Beta: ns[2], Lengths: ns[3], Len: l, Eps: 1e-3, Group: pair{}})
		return y
	}, optest.F32s(r, "x", 2*l, d), gamma, beta, optest.I32s("lengths", make([]int32, 2), 2))
}
