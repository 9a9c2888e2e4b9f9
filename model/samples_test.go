package model

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// tinyNAAF is a model with a boundary.
func tinyNAAF() config.Config {
	cfg := tinyFILIP(interact.NAAF)
	cfg.Model.Interaction.Penalty = 2
	cfg.Objective.ITC.InBatchWeight = 0
	cfg.Objective.Hinge = objectives.Hinge{Weighted: section.Weigh(1), Margin: .2, Negatives: "hardest"}
	return cfg
}

func boundaryOf(t *testing.T, m *Trainer) []float32 {
	t.Helper()
	q, ok := m.params.Get(interact.BoundaryName)
	if !ok || !q.Frozen {
		t.Fatal("there is no boundary that is not trained")
	}
	return m.params.Value(q)
}

// pass runs a step and no update, and returns the loss.
func pass(t *testing.T, m *Trainer, b Batch) float64 {
	t.Helper()
	return forward(t, m, b, Control{}).Loss
}

// TestSamples: a step gives the similarities of words to their nearest patches, of texts whose
// own image is the best; further micro-batches add theirs, and a first one begins anew.
func TestSamples(t *testing.T) {
	m := buildInteraction(t, tinyNAAF())
	b := randomPairs(m, 7)
	for i := range b.Lengths {
		b.Lengths[i] = max(b.Lengths[i], 2)
	}
	for range 12 { // until some texts rank their image first
		step(t, m, b, Control{})
	}
	pass(t, m, b)
	x, y := tokenRows(t, m, m.Image(), b, nil), tokenRows(t, m, m.Text(), b, b.Lengths)
	moments := func(i, j int) (o interact.Moments) {
		for _, q := range y[j] {
			top := math.Inf(-1)
			for _, k := range x[i] {
				sum := 0.
				for c := range q {
					sum += q[c] * k[c]
				}
				top = max(top, sum)
			}
			o.N, o.Sum, o.Squares = o.N+1, o.Sum+top, o.Squares+top*top
		}
		return o
	}
	n, near := len(b.IDs), func(a, b interact.Moments) bool {
		return a.N == b.N && math.Abs(a.Sum-b.Sum) < 1e-4 && math.Abs(a.Squares-b.Squares) < 1e-4
	}
	// The scores of training are those of evaluation but for what words share: any subset of the texts may
	// rank their image first, and one of them explains the samples.
	add := func(a, b interact.Moments) interact.Moments {
		return interact.Moments{N: a.N + b.N, Sum: a.Sum + b.Sum, Squares: a.Squares + b.Squares}
	}
	found := false
	for set := range 1 << n {
		var all interact.Moments
		for j := range n {
			if set>>j&1 != 0 {
				all = add(all, moments(j, j))
			}
		}
		found = found || near(all, m.step.samples.all.Matched)
	}
	if got := m.step.samples.all; !found || got.Matched.N == 0 || got.Matched.N != got.Mismatched.N || got.Mismatched == got.Matched {
		t.Errorf("samples %+v are of no set of texts", got)
	}
	once := m.step.samples.all
	pass(t, m, b)
	if m.step.samples.all != once {
		t.Errorf("a first micro-batch after another one gives %v, not %v", m.step.samples.all, once)
	}
	if err := m.sample(false); err != nil || m.step.samples.all != (interact.Samples{Matched: add(once.Matched, once.Matched), Mismatched: add(once.Mismatched, once.Mismatched)}) {
		t.Errorf("a second micro-batch gives %v (%v)", m.step.samples.all, err)
	}
}

// TestBoundaryMoves: an update moves the boundary by its samples, the next step reads it, and it is
// among the parameters of a checkpoint, so that a resumed run goes on with it.
func TestBoundaryMoves(t *testing.T) {
	whole, resumed := buildInteraction(t, tinyNAAF()), buildInteraction(t, tinyNAAF())
	b := randomPairs(whole, 7)
	first := pass(t, whole, b)
	check.OK(t, whole.After())
	if v := boundaryOf(t, whole); v[0] != 0 || v[1] != 0 {
		t.Errorf("few words move the boundary to %v", v)
	}
	pass(t, whole, b)
	x := &whole.step.samples.all
	x.Matched, x.Mismatched = interact.Moments{N: 400, Sum: 240, Squares: 148}, interact.Moments{N: 400, Sum: 80, Squares: 20}
	t0, safe := x.Boundary(0, 0, 2)
	check.OK(t, whole.After())
	if v := boundaryOf(t, whole); v[0] != float32(t0) || v[1] != float32(safe) || v[0] <= 0 || v[1] <= 0 || v[0] == v[1] {
		t.Errorf("the boundary is %v, want %v and %v", v, t0, safe)
	}
	if *x != (interact.Samples{}) {
		t.Errorf("samples %v stay after the update", *x)
	}
	second := pass(t, whole, b)
	if second == first {
		t.Error("the boundary changes no loss")
	}
	values := map[string]any{}
	for _, part := range whole.params.State() {
		for _, v := range part.Tensors() {
			values[part.StateName()+v.Name] = slices.Clone(v.Data.([]float32))
		}
	}
	for _, part := range resumed.params.State() {
		for _, v := range part.Tensors() {
			copy(v.Data.([]float32), values[part.StateName()+v.Name].([]float32))
		}
	}
	if got := pass(t, resumed, b); got != second {
		t.Errorf("resumed, the loss is %v, %v without a break", got, second)
	}
}
