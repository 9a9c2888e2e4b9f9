package exec_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
)

// TestPasses splits a profile at the loss: all that comes first is the forward pass.
func TestPasses(t *testing.T) {
	f := network(t)
	m := f.compile(t, exec.Config{})
	for range 3 {
		check.OK(t, m.RunAll())
	}
	loss, last := f.outputs[0], f.outputs[len(f.outputs)-1]
	total := m.Profile().Time
	before, after := m.Passes(loss)
	if before <= 0 || after <= 0 || before+after != total {
		t.Errorf("%v up to the loss and %v after it, of %v", before, after, total)
	}
	if b, _ := m.Passes(last); b <= before {
		t.Errorf("%v up to a gradient, %v up to the loss", b, before)
	}
	if b, a := m.Passes(f.inputs[0]); b != 0 || a != total {
		t.Errorf("an input, which is not computed: %v and %v", b, a)
	}
	m.ResetProfile()
	if b, a := m.Passes(loss); b != 0 || a != 0 {
		t.Errorf("%v and %v after a reset", b, a)
	}
}

// TestRunTo computes up to a node and no further, with the bits of a whole run, and a whole run
// comes after it.
func TestRunTo(t *testing.T) {
	f := network(t)
	whole, m := f.compile(t, exec.Config{}), f.compile(t, exec.Config{})
	run(t, whole)
	loss := f.outputs[0]
	value := func(m *exec.Machine, n *gorgonia.Node) []float32 {
		return check.Get(m.Value(n))(t).F32
	}
	if err := m.RunTo(t.Context(), f.inputs[0]); err != nil || m.Profile().Time != 0 {
		t.Errorf("to an input: %v, %v", m.Profile().Time, err)
	}
	check.OK(t, m.RunTo(t.Context(), f.inputs[0], loss))
	if !slices.Equal(value(m, loss), value(whole, loss)) {
		t.Errorf("%v, of a whole run %v", value(m, loss), value(whole, loss))
	}
	if _, after := m.Passes(loss); after != 0 || m.Profile().Runs != 0 {
		t.Errorf("%v after the loss, %d runs", after, m.Profile().Runs)
	}
	run(t, m)
	for _, n := range f.outputs {
		if !slices.Equal(value(m, n), value(whole, n)) {
			t.Errorf("%v differs after a part of a run", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.RunTo(ctx, loss); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that is cancelled: %v", err)
	}
}

// TestPassesOfSum splits at a sum that takes place in one of its summands.
func TestPassesOfSum(t *testing.T) {
	s := newSums(t, 2, rand.New(rand.NewPCG(3, 7)))
	sum := s.add(s.negate(s.inputs[0]), s.shift(s.inputs[1], true))
	s.outputs = gorgonia.Nodes{s.shift(sum, false)}
	m := s.compile(t, exec.Config{})
	run(t, m)
	before, after := m.Passes(sum)
	if m.Nodes() != 3 || before <= 0 || after <= 0 || before+after != m.Profile().Time {
		t.Errorf("%d nodes: %v up to the sum and %v after it, of %v", m.Nodes(), before, after, m.Profile().Time)
	}
}

func TestMaxBytes(t *testing.T) {
	f := network(t)
	need := exact(t, f)
	var full *exec.MemoryError
	_, err := exec.Compile(f.g, exec.Config{Engine: engine, Outputs: f.outputs, MaxBytes: 64})
	if !errors.As(err, &full) || full.Max != 64 || full.Need != need {
		t.Errorf("got %v, want a memory error of %d bytes, scratch included", err, need)
	}
	if _, err := exec.Compile(f.g, exec.Config{Engine: engine, Outputs: f.outputs, MaxBytes: need}); err != nil {
		t.Error(err)
	}
}

// exact returns the bytes that a network plans.
func exact(t *testing.T, f *feed) int64 {
	m := check.Get(exec.Compile(f.g, exec.Config{Engine: engine, Outputs: f.outputs}))(t)
	return m.Memory()
}
