package exec_test

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/arith"
	"gorgonia.org/gorgonia"
)

// recorder is a ram that records: steps run at once, and while it records they are put on a tape that a launch plays.
type recorder struct {
	ram
	recorded, launched, closed int
}

type tape struct {
	d     *recorder
	steps func() error
}

func (d *recorder) Record(steps func() error) (exec.Recording, error) {
	d.recorded++
	return &tape{d, steps}, nil
}

func (t *tape) Launch() error {
	t.d.launched++
	return t.steps()
}

func (t *tape) Close() error {
	t.d.closed++
	return nil
}

// TestRecord: what lies between two steps of the host is recorded after it has run once, replayed from then on, recorded again when
// an input has another buffer, and given back.
func TestRecord(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	g := gorgonia.NewGraph()
	x, xs := matrix(g, r, "x", 3, 4)
	out := onRAM(onRAM(arith.Add(onRAM(onRAM(x)), x))) // a step of the host's between two pairs: 20x
	d := &recorder{}
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Device: d, Outputs: gorgonia.Nodes{out}}))(t)
	if got := m.OnHost(); len(got) != 1 {
		t.Errorf("on the host: %v, want the addition alone", got)
	}
	check.OK(t, m.SetInput(x, xs))
	run := func(what string, in []float32, recorded, launched, closed int) {
		t.Helper()
		d.recorded, d.launched, d.closed = 0, 0, 0
		check.OK(t, m.RunAll())
		if d.recorded != recorded || d.launched != launched || d.closed != closed {
			t.Errorf("%s: %d recorded, %d launched and %d closed, want %d, %d and %d", what, d.recorded, d.launched, d.closed, recorded, launched, closed)
		}
		v := check.Get(m.Value(out))(t)
		for i, x := range in {
			if v.F32[i] != 4*(4*x+x) {
				t.Fatalf("%s: element %d is %v, want %v", what, i, v.F32[i], 20*x)
			}
		}
	}
	run("first", xs, 0, 0, 0)
	run("second", xs, 2, 2, 0)
	xs[3] = 7
	run("third, other values", xs, 0, 2, 0)

	other := counted(t, d)
	check.OK(t, m.SetInput(x, other))
	run("another buffer", other.words, 2, 2, 2)
	run("again", other.words, 0, 2, 0)
	d.closed = 0
	if err := m.Close(); err != nil || d.closed != 2 {
		t.Errorf("close gives back %d recordings, want 2 (%v)", d.closed, err)
	}
}

// TestRecordPart: a run to an output within a section, and one that looks for NaN, go step by step.
func TestRecordPart(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for _, check := range []bool{false, true} {
		g := gorgonia.NewGraph()
		x, xs := matrix(g, r, "x", 3, 4)
		half := onRAM(x)
		out := onRAM(half)
		d := &recorder{}
		m, err := exec.Compile(g, exec.Config{Engine: engine, Device: d, Outputs: gorgonia.Nodes{half, out}, CheckNaN: check})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.SetInput(x, xs); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if check {
				err = m.RunAll()
			} else {
				err = m.RunTo(t.Context(), half)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if d.recorded != 0 {
			t.Errorf("check for NaN %t: %d recordings, want none", check, d.recorded)
		}
		if v, err := m.Value(half); err != nil || v.F32[5] != 2*xs[5] {
			t.Errorf("check for NaN %t: %v (%v), want %v", check, v.F32[5], err, 2*xs[5])
		}
	}
}

// stager is a recorder with memory for values that wait.
type stager struct {
	recorder
	filled, taken, dropped int
}

type waiting struct {
	d      *stager
	values []float32
}

func (d *stager) NewStage(s exec.Spec) (exec.Stage, error) { return &waiting{d: d}, nil }

func (w *waiting) Fill(from exec.Array) (bool, error) {
	w.d.filled++
	w.values = from.F32
	return true, nil
}

func (w *waiting) Take(to exec.Buffer) error {
	w.d.taken++
	copy(to.(*ramBuffer).words, w.values)
	return nil
}

func (w *waiting) Drop() error {
	w.d.dropped++
	return nil
}

func (w *waiting) Free() error { return nil }

// TestStage: a run whose input was on its way takes it from there, once; other values, and those after Unstage, are copied.
func TestStage(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	g := gorgonia.NewGraph()
	x, first := matrix(g, r, "x", 3, 4)
	out := onRAM(x)
	d := &stager{}
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Device: d, Outputs: gorgonia.Nodes{out}}))(t)
	second := make([]float32, 12)
	for i := range second {
		second[i] = float32(i)
	}
	run := func(what string, in []float32, taken int) {
		t.Helper()
		d.taken = 0
		check.OK(t, m.SetInput(x, in))
		check.OK(t, m.RunAll())
		v := check.Get(m.Value(out))(t)
		for i, x := range in {
			if v.F32[i] != 2*x {
				t.Fatalf("%s: element %d is %v, want %v", what, i, v.F32[i], 2*x)
			}
		}
		if d.taken != taken {
			t.Errorf("%s: taken %d times, want %d", what, d.taken, taken)
		}
	}
	stage := func(in []float32) {
		t.Helper()
		check.OK(t, m.Stage(x, in))
	}
	stage(second) // before there is anything on the device
	run("first", first, 0)
	stage(second)
	run("on its way", second, 1)
	run("once", second, 0)
	stage(second)
	run("others", first, 0)
	second[4] = 55 // what was on its way is forgotten
	run("after others", second, 0)
	stage(first)
	stage(second)
	if err := m.Unstage(); err != nil || d.dropped != 3 {
		t.Errorf("%d copies are dropped, want those that others overtook, one told anew and one unstaged (%v)", d.dropped, err)
	}
	second[5] = 77
	run("after unstage", second, 0)
}
