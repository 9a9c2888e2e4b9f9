package interaction

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// problemOfPairs gives the scores of images with texts.
type problemOfPairs interface {
	inputs() []optest.Input
	build(ns gorgonia.Nodes) *gorgonia.Node
}

// outputWeights are those of the scores in optest.Gradients.
func outputWeights(n, m int) []float32 {
	return optest.F32s(rand.New(rand.NewPCG(7, 7)), "", n, m).Floats()
}

// ofSide is the sequence that rows of an input belong to in the pair of image i and text j: texts to j, others to i.
func ofSide(input string, i, j int) int {
	if input == "texts" || input == "whole texts" {
		return j
	}
	return i
}

// checkPairs wants the gradients of p, whose scores are those of n images with m texts, to be the sums of those of its
// pairs alone. wrt are inputs with a gradient, sequence is as ofSide.
func checkPairs[P problemOfPairs](t *testing.T, name string, p P, wrt []int, n, m int, pair func(i, j int) P,
	sequence func(input string, i, j int) int, tolerance float64) {
	t.Helper()
	in := p.inputs()
	grads, _ := optest.Gradients(t, p.build, wrt, in...)
	g, sums := outputWeights(n, m), make([][]float64, len(grads))
	for k := range sums {
		sums[k] = make([]float64, len(grads[k]))
	}
	for i := range n {
		for j := range m {
			one, slope := pair(i, j), float64(g[i*m+j])/float64(g[0])
			part, _ := optest.Gradients(t, one.build, wrt, one.inputs()...)
			for k, at := range wrt {
				from := sequence(in[at].Name, i, j) * len(part[k])
				for c, v := range part[k] {
					sums[k][from+c] += slope * float64(v)
				}
			}
		}
	}
	for k, at := range wrt {
		optest.Near(t, name+": "+in[at].Name, grads[k], narrow(sums[k]), tolerance)
	}
}

// checkDefined compares gradients with finite differences of the definition, whose scores naive gives.
func checkDefined(t *testing.T, p problemOfPairs, wrt []int, g []float32, naive func() []float64) {
	t.Helper()
	in := p.inputs()
	grads, _ := optest.Gradients(t, p.build, wrt, in...)
	for k, at := range wrt {
		x := in[at].Floats()
		want, largest := make([]float64, len(x)), 1e-2 // of one query all but cancels
		for i, old := range x {
			at := func(v float32) (sum float64) {
				x[i] = v
				for k, score := range naive() {
					sum += score * float64(g[k])
				}
				return sum
			}
			up, down := old+1./65536, old-1./65536
			want[i] = (at(up) - at(down)) / (float64(up) - float64(down))
			largest, x[i] = max(largest, math.Abs(want[i])), old
		}
		for i, v := range want {
			if !(math.Abs(float64(grads[k][i])-v) <= 1e-3*largest) {
				t.Errorf("gradient of %s[%d]: got %v, finite differences %v", in[at].Name, i, grads[k][i], v)
			}
		}
	}
}
