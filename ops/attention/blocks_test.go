package attention

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// blockCases are the ops of transformer blocks that the CUDA device has no steps for.
func blockCases() []optest.Case {
	r := rand.New(rand.NewPCG(23, 24))
	return []optest.Case{
		{Name: "heads", Inputs: []optest.Input{optest.F32s(r, "x", 7*9, (4+2*2)*8)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Heads(HeadsArgs{QKV: ns[0], Heads: 4, Shared: 2, Len: 9, Angles: TextAngles(9, 3, 100, 1, false), Scale: .5})
		}},
		{Name: "grid bias", Inputs: []optest.Input{optest.F32s(r, "table", 7*7+3, 3)}, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return GridBias(ns[0], 4, 2)
		}},
		{Name: "distance bias", Inputs: []optest.Input{optest.F32s(r, "x", 2, 2)}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return DistanceBias(ns[0], DistanceArgs{Heads: 3, Len: 20, Window: 4, Linear: true})
		}},
		{Name: "disentangled bias", Inputs: []optest.Input{optest.F32s(r, "x", 5*7, 3*8), optest.F32s(r, "distances", 8, 3*8)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Disentangled(DisentangledArgs{QKV: ns[0], Distances: ns[1], Len: 7, Heads: 4, Farthest: 6, Scale: .5})
			}},
		{Name: "self attention with a bias of each sequence", Inputs: []optest.Input{optest.F32s(r, "x", 5*7, 3*8), optest.F32s(r, "bias", 5*4, 7, 7),
			optest.I32s("lengths", []int32{7, 1, 0, 3, 5}, 5)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SelfAttention(SelfArgs{QKV: ns[0], Bias: ns[1], Lengths: ns[2], Len: 7, Heads: 4, Keep: 1})
			}},
	}
}

func TestBlockCases(t *testing.T) { optest.CheckCases(t, blockCases()) }

func TestBlocksCUDA(t *testing.T) {
	optest.CheckCUDA(t, blockCases(), "heads", "heads dx", "grid bias", "grid bias dtable", "distance bias", "disentangled bias", "disentangled bias dx", "self attention", "self attention dx")
}

// TestHeads compares with turning pairs as complex numbers.
func TestHeads(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 35))
	for _, c := range []struct {
		rows, l, heads, shared, e, pairs int
		adjacent                         bool
	}{{1, 1, 1, 1, 2, 1, false}, {2, 5, 4, 2, 6, 3, true}, {3, 4, 6, 1, 5, 2, false}, {2, 3, 2, 2, 3, 0, false}} {
		x := optest.F32s(r, "x", c.rows*c.l, (c.heads+2*c.shared)*c.e)
		const theta, scale = 50, 2
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			return Heads(HeadsArgs{QKV: ns[0], Heads: c.heads, Shared: c.shared, Len: c.l, Scale: .3,
				Angles: TextAngles(c.l, c.pairs, theta, scale, c.adjacent)})
		}
		var want []float32
		for row := range c.rows * c.l {
			in := x.Floats()[row*(c.heads+2*c.shared)*c.e:]
			for part := range 3 {
				for h := range c.heads {
					at := h
					if part > 0 {
						at = c.heads + (part-1)*c.shared + h*c.shared/c.heads
					}
					head := append([]float32(nil), in[at*c.e:][:c.e]...)
					for i := range c.pairs {
						if part == 2 {
							break
						}
						j, k := i, c.pairs+i
						if c.adjacent {
							j, k = 2*i, 2*i+1
						}
						angle := float64(row%c.l) / scale * math.Pow(theta, -float64(i)/float64(c.pairs))
						turned := complex(float64(head[j]), float64(head[k])) * complex(math.Cos(angle), math.Sin(angle))
						head[j], head[k] = float32(real(turned)), float32(imag(turned))
					}
					if part == 0 {
						for i := range head {
							head[i] *= .3
						}
					}
					want = append(want, head...)
				}
			}
		}
		optest.Near(t, "heads", optest.Eval(t, build, x).F32, want, 1e-5)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}

// TestDistanceBias: slopes are those of the paper for 8 heads, and those of its code for 6.
func TestDistanceBias(t *testing.T) {
	x := optest.F32s(rand.New(rand.NewPCG(1, 36)), "x", 1)
	for heads, want := range map[int][]float32{8: {.5, .25, .125, .0625, .03125, .015625, .0078125, .00390625},
		6: {.25, .0625, .015625, .00390625, .5, .125}} {
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			return DistanceBias(ns[0], DistanceArgs{Heads: heads, Len: 4, Window: 2, Linear: true})
		}, x).F32
		for h, slope := range want {
			for i := range 4 {
				for j := range 4 {
					d := max(i-j, j-i)
					if v := got[(h*4+i)*4+j]; d <= 2 && v != -slope*float32(d) || d > 2 && v != far {
						t.Errorf("head %d of %d, %d to %d: %v", h, heads, i, j, v)
					}
				}
			}
		}
	}
}

// TestBlockIdentity: ops that differ in one argument are different nodes.
func TestBlockIdentity(t *testing.T) {
	g, ns := optest.Nodes([]optest.Input{optest.F32s(rand.New(rand.NewPCG(1, 37)), "x", 12, 24)})
	x := ns[0]
	of := func(a HeadsArgs) func() *gorgonia.Node {
		return func() *gorgonia.Node { a.QKV = x; return Heads(a) }
	}
	apart := func(heads, l, farthest int, scale float32) func() *gorgonia.Node {
		return func() *gorgonia.Node {
			return Disentangled(DisentangledArgs{QKV: x, Distances: x, Heads: heads, Len: l, Farthest: farthest, Scale: scale})
		}
	}
	bias := func(a DistanceArgs) func() *gorgonia.Node {
		return func() *gorgonia.Node { return DistanceBias(x, a) }
	}
	optest.CheckIdentity(t, g, []func() *gorgonia.Node{
		of(HeadsArgs{Heads: 2, Shared: 1, Len: 3}), of(HeadsArgs{Heads: 2, Shared: 2, Len: 3}), of(HeadsArgs{Heads: 4, Shared: 1, Len: 3}),
		of(HeadsArgs{Heads: 2, Shared: 1, Len: 4}), of(HeadsArgs{Heads: 2, Shared: 1, Len: 3, Scale: 2}),
		of(HeadsArgs{Heads: 2, Shared: 1, Len: 3, Angles: TextAngles(3, 2, 10, 1, false)}),
		of(HeadsArgs{Heads: 2, Shared: 1, Len: 3, Angles: TextAngles(3, 2, 11, 1, false)}),
		of(HeadsArgs{Heads: 2, Shared: 1, Len: 3, Angles: TextAngles(3, 2, 10, 1, true)}),
		bias(DistanceArgs{Heads: 2, Len: 3}), bias(DistanceArgs{Heads: 3, Len: 3}), bias(DistanceArgs{Heads: 2, Len: 4}),
		apart(2, 3, 0, 1), apart(1, 3, 0, 1), apart(2, 4, 0, 1), apart(2, 3, 9, 1), apart(2, 3, 0, .5),
		bias(DistanceArgs{Heads: 2, Len: 3, Window: 1}), bias(DistanceArgs{Heads: 2, Len: 3, Linear: true}),
	})
}

// TestDisentangled: gradients are those of finite differences, also through attention, and the scores those of plain loops
// over the buckets of transformers 5 (make_log_bucket_position(d, 4, 9) for d from 0 to 9).
func TestDisentangled(t *testing.T) {
	want := []int{0, 1, 2, 3, 3, 3, 3, 3, 3, 4}
	for away, bucket := range want {
		if a, b := distanceBucket(away, 4, 9), distanceBucket(-away, 4, 9); a != bucket || b != -bucket {
			t.Errorf("distance %d: buckets %d and %d, want %d", away, a, b, bucket)
		}
	}
	r := rand.New(rand.NewPCG(1, 38))
	const rows, l, heads, e = 2, 6, 2, 3
	const d = heads * e
	x, table := optest.F32s(r, "x", rows*l, 3*d), optest.F32s(r, "distances", 8, 3*d)
	for _, farthest := range []int{0, 9} {
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			return Disentangled(DisentangledArgs{QKV: ns[0], Distances: ns[1], Len: l, Heads: heads, Farthest: farthest, Scale: .7})
		}
		var scores []float32
		for n := range rows * heads {
			for i := range l {
				for j := range l {
					away := i - j
					if size := max(away, -away); farthest > 0 {
						away = want[size] * (2*min(1, max(0, away)) - 1)
					}
					sum, at := float32(0), min(max(away+4, 0), 7)*3*d+n%heads*e
					for c := range e {
						of := func(token, part int) float32 { return x.Floats()[(n/heads*l+token)*3*d+part*d+n%heads*e+c] }
						sum += of(i, 0)*table.Floats()[at+d+c] + of(j, 1)*table.Floats()[at+c]
					}
					scores = append(scores, .7*sum)
				}
			}
		}
		optest.Near(t, "scores", optest.Eval(t, build, x, table).F32, scores, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, table)
		optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			return SelfAttention(SelfArgs{QKV: ns[0], Bias: build(ns), Len: l, Heads: heads, Keep: 1})
		}, []int{0, 1}, 1e-2, 2e-3, x, table)
	}
}
