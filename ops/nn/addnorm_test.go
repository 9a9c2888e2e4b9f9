package nn

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// addNormUses are ways to read the results of AddNorm.
var addNormUses = map[string]func(sum, norm *gorgonia.Node) *gorgonia.Node{
	"norm": func(_, norm *gorgonia.Node) *gorgonia.Node { return norm },
	"sum":  func(sum, _ *gorgonia.Node) *gorgonia.Node { return sum },
	"both": func(sum, norm *gorgonia.Node) *gorgonia.Node { return arith.Add(sum, GELU(norm)) },
	"both, the same gradient": func(sum, norm *gorgonia.Node) *gorgonia.Node {
		return arith.Add(sum, norm)
	},
	"both, several times": func(sum, norm *gorgonia.Node) *gorgonia.Node {
		return arith.Add(arith.Add(GELU(norm), GELU(sum)), arith.Add(arith.Add(sum, norm), GELU(GELU(sum))))
	},
}

// addNormCase is AddNorm of random operands, and the same out of single ops.
type addNormCase struct {
	inputs       []optest.Input // h, x, gamma, beta, key
	fused, plain func(ns gorgonia.Nodes) (sum, norm *gorgonia.Node)
}

func newAddNormCase(r *rand.Rand, rows, cols int, dropout bool) addNormCase {
	const keep, eps = 0.75, 1e-3
	bits := func(ns gorgonia.Nodes) *gorgonia.Node {
		if !dropout {
			return nil
		}
		return DropoutBits(ns[4], 5, rows, cols, keep)
	}
	return addNormCase{
		inputs: []optest.Input{
			optest.F32s(r, "h", rows, cols), optest.F32s(r, "x", rows, cols), optest.F32s(r, "gamma", cols), optest.F32s(r, "beta", cols),
			optest.I32s("key", []int32{9, -4}, 2),
		},
		fused: func(ns gorgonia.Nodes) (sum, norm *gorgonia.Node) {
			return AddNorm(AddNormArgs{H: ns[0], X: ns[1], Bits: bits(ns), Gamma: ns[2], Beta: ns[3], Keep: keep, Eps: eps})
		},
		plain: func(ns gorgonia.Nodes) (sum, norm *gorgonia.Node) {
			h := ns[0]
			if b := bits(ns); b != nil {
				h = Dropout(h, b, keep)
			}
			sum = arith.Add(ns[1], h)
			return sum, LayerNorm(sum, ns[2], ns[3], eps)
		},
	}
}

// TestAddNorm compares it with the ops that it stands for: the same bits forward, the
// same gradients up to the order of additions, and those of finite differences.
func TestAddNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	shapes := append([][]int{{1, 1}, {3, 30}, {100, 48}, {2, 1000}}, optest.RandomShapes(r, 4, 70, 80)...)
	for name, use := range addNormUses {
		for i, s := range shapes {
			rows, cols := s[0], s[1]+2 // rows of one or two values have no gradient
			for _, dropout := range []bool{false, true} {
				what := fmt.Sprintf("%s, %d x %d, dropout %t", name, rows, cols, dropout)
				c := newAddNormCase(r, rows, cols, dropout)
				build := func(f func(gorgonia.Nodes) (sum, norm *gorgonia.Node)) func(gorgonia.Nodes) *gorgonia.Node {
					return func(ns gorgonia.Nodes) *gorgonia.Node { return use(f(ns)) }
				}
				fused, plain := build(c.fused), build(c.plain)
				optest.Near(t, what, optest.Eval(t, fused, c.inputs...).F32, optest.Eval(t, plain, c.inputs...).F32, 0)
				wrt := []int{0, 1, 2, 3}
				if name == "sum" {
					wrt = wrt[:2] // the plain ops have no way to gamma and beta
				}
				got, _ := optest.Gradients(t, fused, wrt, c.inputs...)
				want, _ := optest.Gradients(t, plain, wrt, c.inputs...)
				for k := range got {
					optest.Near(t, what+": gradient of "+c.inputs[k].Name, got[k], want[k], 2e-6)
				}
				if i < 5 {
					optest.CheckGrad(t, fused, []int{0, 1, 2, 3}, 1e-3, 2e-2, c.inputs...)
				}
			}
		}
	}
}

// TestAddNormIsFused looks at what runs: one op forward, one backward, and additions
// only where a result is read more than once.
func TestAddNormIsFused(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	for _, c := range []struct {
		use     string
		dropout bool
		want    string
	}{
		{"norm", false, "add norm, add norm dx"},
		{"norm", true, "dropout bits, add norm, add norm dx, dropout"},
		{"sum", false, "add norm, zeros, zeros"},
		{"sum", true, "dropout bits, add norm, dropout, zeros, zeros"},
		{"both", false, "add norm, gelu, add, gelu dx, add norm dx"},
		{"both", true, "dropout bits, add norm, gelu, add, gelu dx, add norm dx, dropout"},
	} {
		a := newAddNormCase(r, 4, 6, c.dropout)
		oc := optest.Case{Inputs: a.inputs, WRT: []int{0, 1, 2, 3}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return addNormUses[c.use](a.fused(ns))
		}}
		m, _ := oc.Compile(t, optest.Engine)
		check.OK(t, m.RunAll())
		var got []string
		for _, k := range m.Profile().Kinds {
			for range k.Nodes {
				if !strings.HasPrefix(k.Kind, "test ") {
					got = append(got, k.Kind)
				}
			}
		}
		want := strings.Split(c.want, ", ")
		if !equalSets(got, want) {
			t.Errorf("%s, dropout %t: runs %q, want %q", c.use, c.dropout, got, want)
		}
	}
}

// equalSets compares two lists without regard to order.
func equalSets(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestAddNormErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "m", 6, 4), optest.F32s(r, "other", 6, 5), optest.F32s(r, "v", 4), optest.F32s(r, "w", 3), optest.I32s("bits", make([]int32, 6), 6), optest.I32s("few", make([]int32, 5), 5)})
	m, other, v, w, bits, few := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5]
	for _, c := range []struct {
		want  string
		build func()
	}{
		{"want h and x (R, D) of one shape", func() { AddNorm(AddNormArgs{H: m, X: other, Gamma: v, Beta: v, Keep: 1, Eps: 1}) }},
		{"want h and x (R, D) of one shape", func() { AddNorm(AddNormArgs{H: v, X: v, Gamma: v, Beta: v, Keep: 1, Eps: 1}) }},
		{"gamma must have shape (4)", func() { AddNorm(AddNormArgs{H: m, X: m, Gamma: w, Beta: v, Keep: 1, Eps: 1}) }},
		{"beta must have shape (4)", func() { AddNorm(AddNormArgs{H: m, X: m, Gamma: v, Beta: w, Keep: 1, Eps: 1}) }},
		{"eps must not be negative", func() { AddNorm(AddNormArgs{H: m, X: m, Gamma: v, Beta: v, Keep: 1, Eps: -1}) }},
		{"bits must have shape (6)", func() { AddNorm(AddNormArgs{H: m, X: m, Bits: few, Gamma: v, Beta: v, Keep: 1, Eps: 1}) }},
		{"keep must be in (0, 1] (got 0)", func() { AddNorm(AddNormArgs{H: m, X: m, Bits: bits, Gamma: v, Beta: v, Keep: 0, Eps: 1}) }},
		{"operand 0 is nil", func() { AddNorm(AddNormArgs{X: m, Gamma: v, Beta: v, Keep: 1, Eps: 1}) }},
	} {
		optest.BuildError(t, c.want, c.want, c.build)
	}
}

// BenchmarkAddNorm runs a chain of seams with their gradients, more than the caches
// hold, beside the same out of single ops, as microseconds a seam in the best of all
// runs. h is the other result of the seam before.
func BenchmarkAddNorm(b *testing.B) {
	r := rand.New(rand.NewPCG(8, 4))
	const rows, cols, depth = 2056, 768, 8
	for _, dropout := range []bool{false, true} {
		a := newAddNormCase(r, rows, cols, dropout)
		machines := map[string]func() error{}
		for name, f := range map[string]func(gorgonia.Nodes) (sum, norm *gorgonia.Node){"fused": a.fused, "single": a.plain} {
			oc := optest.Case{Inputs: a.inputs, WRT: []int{0, 1, 2, 3}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				sum, norm := f(ns)
				for range depth - 1 {
					sum, norm = f(gorgonia.Nodes{norm, sum, ns[2], ns[3], ns[4]})
				}
				return norm
			}}
			m, _ := oc.Compile(b, optest.Engine)
			machines[name] = m.RunAll
		}
		b.Run(fmt.Sprintf("dropout=%t", dropout), func(b *testing.B) {
			spent := map[string]time.Duration{}
			for b.Loop() {
				for name, run := range machines {
					start := time.Now()
					check.OK(b, run())
					if d := time.Since(start); spent[name] == 0 || d < spent[name] {
						spent[name] = d
					}
				}
			}
			for name, d := range spent {
				b.ReportMetric(float64(d.Microseconds())/depth, name+"-us")
			}
			b.ReportMetric(float64(spent["single"])/float64(spent["fused"]), "ratio")
		})
	}
}
