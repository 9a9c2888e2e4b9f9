package contrast

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// tripletForms are those of TestTriplet.
var tripletForms = map[string]Triplets{
	"triplet": {Hardest: true, Margin: .25}, "triplet soft": {Hardest: true, Soft: true},
	"triplet all": {Margin: .25}, "triplet all soft": {Soft: true},
}

// naiveTriplet is the definition: every triple of rows is looked at.
func naiveTriplet(t Triplets, s []float32, ids []int32) (loss float64, anchors int) {
	n := len(ids)
	sum, count := 0., 0
	for a := range n {
		far, near, any := math.Inf(1), math.Inf(-1), false
		for p := range n {
			for q := range n {
				if p == a || ids[p] != ids[a] || ids[q] == ids[a] {
					continue
				}
				sp, sq := float64(s[a*n+p]), float64(s[a*n+q])
				if far, near, any = min(far, sp), max(near, sq), true; !t.Hardest {
					v, _ := t.value(sq - sp)
					sum += v
					count++
				}
			}
		}
		if any {
			if anchors++; t.Hardest {
				v, _ := t.value(near - far)
				sum += v
				count++
			}
		}
	}
	return sum / float64(max(1, count)), anchors
}

// kinked says whether a step of differences may meet a kink: a hinge near 0, or two hardest ones near each other.
func kinked(t Triplets, s []float32, ids []int32) bool {
	const step = 2e-3
	n := len(ids)
	for a := range n {
		for p := range n {
			for q := range n {
				if p == a || q == a || p == q {
					continue
				}
				gap := float64(s[a*n+q] - s[a*n+p])
				if alike := ids[p] == ids[q]; alike && t.Hardest && math.Abs(gap) < step || !alike && ids[p] == ids[a] && !t.Soft && math.Abs(gap+float64(t.Margin)) < step {
					return true
				}
			}
			if t.Hardest && ids[p] != ids[a] {
				for q := range p {
					if ids[q] != ids[a] && math.Abs(float64(s[a*n+p]-s[a*n+q])) < step {
						return true
					}
				}
			}
		}
	}
	return false
}

// TestTriplet compares random problems, with ids that are alone and with one id for all, with the
// definition and, away from kinks, with its differences.
func TestTriplet(t *testing.T) {
	for name, form := range tripletForms {
		r, smooth := rand.New(rand.NewPCG(71, 1)), 0
		for i := range 40 {
			n := 1 + r.IntN(7)
			ids, s := optest.RandomInts(r, n, []int{1, 2, 3, 100}[i%4]), optest.F32s(r, "", n, n).Data.([]float32)
			in := []optest.Input{optest.In("scores", []int{n, n}, s), optest.I32s("ids", ids, n)}
			build := func(ns gorgonia.Nodes) *gorgonia.Node { return Triplet(ns[0], ns[1], form) }
			want, anchors := naiveTriplet(form, s, ids)
			optest.Near(t, name, optest.Eval(t, build, in...).F32, []float32{float32(want)}, 1e-5)
			if !kinked(form, s, ids) {
				smooth++
				optest.CheckGrad(t, build, []int{0}, 1e-3, 2e-2, in...)
			}
			got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return TripletAnchors(ns[0]) }, in[1]).F32
			if int(got[0]) != anchors {
				t.Errorf("%g anchors, want %d", got[0], anchors)
			}
			if t.Failed() {
				t.Fatalf("%s: problem %d: ids %v, scores %v", name, i, ids, s)
			}
		}
		if smooth < 20 {
			t.Errorf("%s: differences of %d problems are taken", name, smooth)
		}
	}
}

// TestTripletGolden compares losses and gradients with torch, from tools/goldens/triplet.py.
func TestTripletGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	of := func(name string) func(g get) *gorgonia.Node {
		return func(g get) *gorgonia.Node { return Triplet(g("scores"), g("ids"), tripletForms[name]) }
	}
	optest.CheckTorch(t, "triplet.json", map[string]func(get) *gorgonia.Node{
		"hard": of("triplet"), "hard soft": of("triplet soft"), "all": of("triplet all"), "all soft": of("triplet all soft"),
	})
}

// tripletCases are rows of opCases.
func tripletCases() (cases []optest.Case) {
	r := rand.New(rand.NewPCG(71, 2))
	in := []optest.Input{optest.F32s(r, "scores", 90, 90), optest.I32s("ids", optest.RandomInts(r, 90, 30), 90)}
	for name, form := range tripletForms {
		cases = append(cases, optest.Case{Name: name, Inputs: in, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Triplet(ns[0], ns[1], form) }})
	}
	return append(cases, optest.Case{Name: "triplet anchors", Inputs: in[1:], Build: func(ns gorgonia.Nodes) *gorgonia.Node { return TripletAnchors(ns[0]) }})
}

// TestTripletHash: variants that differ in one argument are different nodes, in the gradient too.
func TestTripletHash(t *testing.T) {
	_, ns := optest.Nodes([]optest.Input{optest.In("s", []int{3, 3}, make([]float32, 9)), optest.I32s("ids", make([]int32, 3), 3), optest.In("one", nil, []float32{1})})
	var forward, backward []func() *gorgonia.Node
	for _, form := range append([]Triplets{{Margin: .5}}, tripletForms["triplet"], tripletForms["triplet all"], tripletForms["triplet soft"], tripletForms["triplet all soft"]) {
		build := func() *gorgonia.Node { return Triplet(ns[0], ns[1], form) }
		forward = append(forward, build)
		backward = append(backward, func() *gorgonia.Node { return op.Of(build()).Grad(gorgonia.Nodes{ns[0], ns[1]}, nil, ns[2])[0] })
	}
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{"losses": forward, "gradients": backward})
}

func TestTripletErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 3))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "wide", 2, 3), optest.F32s(r, "s", 2, 2), optest.I32s("ids", make([]int32, 3), 3)})
	optest.BuildError(t, "triplet", "want scores (B, B)", func() { Triplet(ns[0], ns[2], Triplets{}) })
	optest.BuildError(t, "triplet", "ids must have shape (2)", func() { Triplet(ns[1], ns[2], Triplets{}) })
	optest.BuildError(t, "triplet anchors", "want ids (B)", func() { TripletAnchors(ns[1]) })
}
