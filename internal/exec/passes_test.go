package exec_test

import (
	"errors"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
)

// TestPasses splits a profile at the loss: all that comes first is the forward pass.
func TestPasses(t *testing.T) {
	f := network(t)
	m := f.compile(t, exec.Config{})
	for range 3 {
		if err := m.RunAll(); err != nil {
			t.Fatal(err)
		}
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

func TestMaxBytes(t *testing.T) {
	f := network(t)
	need := exact(t, f)
	var full *exec.MemoryError
	_, err := exec.Compile(f.g, exec.Config{Engine: engine, Outputs: f.outputs, MaxBytes: 64})
	if !errors.As(err, &full) || full.Max != 64 || full.Need <= 64 || full.Need > need {
		t.Errorf("got %v, want a memory error of at most %d bytes", err, need)
	}
	if _, err := exec.Compile(f.g, exec.Config{Engine: engine, Outputs: f.outputs, MaxBytes: need}); err != nil {
		t.Error(err)
	}
}

// exact returns the bytes that a network plans.
func exact(t *testing.T, f *feed) int64 {
	m, err := exec.Compile(f.g, exec.Config{Engine: engine, Outputs: f.outputs})
	if err != nil {
		t.Fatal(err)
	}
	return m.Memory()
}
