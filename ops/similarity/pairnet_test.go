package similarity

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func buildPairNet(ns gorgonia.Nodes) *gorgonia.Node {
	return PairNet(PairNetArgs{X: ns[0], Y: ns[1], A: ns[2], U: ns[3], T: ns[4], V: ns[5]})
}

// pairNetInputs are operands of n images, m texts, h hidden units and dim channels.
func pairNetInputs(r *rand.Rand, n, m, h, dim int) []optest.Input {
	return []optest.Input{optest.F32s(r, "x", n, dim), optest.F32s(r, "y", m, dim), optest.F32s(r, "a", h, dim),
		optest.F32s(r, "u", n, h), optest.F32s(r, "t", m, h), optest.F32s(r, "v", h)}
}

func TestPairNet(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 1))
	for _, s := range [][4]int{{1, 1, 1, 1}, {2, 3, 4, 5}, {7, 5, 6, 33}, {3, 40, 9, 2}} {
		n, m, h, dim := s[0], s[1], s[2], s[3]
		in := pairNetInputs(r, n, m, h, dim)
		x, y, a, u, tt, v := in[0].Floats(), in[1].Floats(), in[2].Floats(), in[3].Floats(), in[4].Floats(), in[5].Floats()
		want := make([]float32, n*m)
		for i := range n {
			for j := range m {
				var sum float64
				for k := range h {
					p := float64(u[i*h+k]) + float64(tt[j*h+k])
					for c := range dim {
						p += float64(a[k*dim+c]) * float64(x[i*dim+c]) * float64(y[j*dim+c])
					}
					sum += float64(v[k]) * max(p, 0)
				}
				want[i*m+j] = float32(sum)
			}
		}
		optest.Near(t, "pair net", optest.Eval(t, buildPairNet, in...).F32, want, 1e-5)
		optest.CheckGrad(t, buildPairNet, []int{0, 1, 2, 3, 4, 5}, 1e-3, 2e-2, in...)
	}
}

func TestPairNetErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 2))
	for i, want := range []string{"want x (N, C)", "want x (N, C)", "want x (N, C)", "u must have shape (2, 4)", "t must have shape (3, 4)", "v must have shape (4)"} {
		in := pairNetInputs(r, 2, 3, 4, 5)
		in[i] = optest.F32s(r, in[i].Name, 7, 7)
		_, ns := optest.Nodes(in)
		optest.BuildError(t, "pair net", want, func() { buildPairNet(ns) })
	}
}

func pairNetCases() []optest.Case {
	return []optest.Case{{Name: "pair net", Inputs: pairNetInputs(rand.New(rand.NewPCG(33, 3)), 9, 70, 65, 96), WRT: []int{0, 1, 2, 3, 4, 5}, GEMM: true, Build: buildPairNet}}
}
