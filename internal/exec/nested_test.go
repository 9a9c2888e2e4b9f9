package exec_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// nestedOp adds up what its computation makes of each value of its operand.
type nestedOp struct {
	testOp
	nested  *exec.Nested
	x, y    *gorgonia.Node // of the computation
	scratch int
	on      string // device that it has a step for
}

// PrepareOn fills the computation's input on a device of ram and adds up there.
func (o *nestedOp) PrepareOn(name string, c *exec.DeviceCall) (exec.Step, error) {
	if name != o.on {
		return nil, nil
	}
	x, err := c.Inner.Buffer(o.x)
	if err != nil {
		return nil, err
	}
	y, err := c.Inner.Buffer(o.y)
	if err != nil {
		return nil, err
	}
	return func() error {
		sum := c.Out.Buffer.(*ramBuffer).words
		sum[0] = 0
		for _, v := range c.In[0].Buffer.(*ramBuffer).words {
			x.(*ramBuffer).words[0] = v
			if err := c.Inner.Run(); err != nil {
				return err
			}
			sum[0] += y.(*ramBuffer).words[0]
		}
		return nil
	}, nil
}

func (o *nestedOp) Nested() *exec.Nested { return o.nested }

func (o *nestedOp) Scratch([]tensor.Shape, int) int { return o.scratch }

func (o *nestedOp) Prepare(c *exec.Call) (exec.Step, error) {
	in := make([]float32, 1)
	if err := c.Inner.SetInput(o.x, in); err != nil {
		return nil, err
	}
	return func() error {
		c.Out.F32[0] = 0
		for i := range c.Scratch { // its own part alone
			c.Scratch[i] = 1e30
		}
		for _, v := range c.In[0].F32 {
			in[0] = v
			if err := c.Inner.Run(); err != nil {
				return err
			}
			y, err := c.Inner.Scalar(o.y)
			if err != nil {
				return err
			}
			c.Out.F32[0] += y
		}
		return nil
	}, nil
}

// costOp is a test op of 5 FLOPs that halves its operand.
type costOp struct{ testOp }

func (*costOp) FLOPs([]tensor.Shape) int64 { return 5 }

// nested is a graph whose op doubles halves: y = 2*3*(x/2) for each of four values, and
// another op that overwrites the scratch.
type nested struct {
	g        *gorgonia.ExprGraph
	x, out   *gorgonia.Node
	op       *nestedOp
	contexts int // looks at the context in one run
}

func newNested(t *testing.T) nested {
	t.Helper()
	inner := gorgonia.NewGraph()
	ix := gorgonia.NewVector(inner, tensor.Float32, gorgonia.WithShape(1), gorgonia.WithName("ix"))
	half := &costOp{testOp{kind: "half", step: func(c *exec.Call) { c.Out.F32[0] = c.In[0].F32[0] / 2 }, shape: tensor.Shape{1}, arity: 1}}
	h := gorgonia.Must(gorgonia.ApplyOp(half, ix))
	six := gorgonia.NewConstant(tensor.New(tensor.WithShape(1), tensor.WithBacking([]float32{6})), gorgonia.WithName("six"))
	times := &testOp{kind: "times", step: func(c *exec.Call) { c.Out.F32[0] = c.In[0].F32[0] * c.In[1].F32[0] }}
	iy := times.apply(t, tensor.Shape{1}, h, six)

	n := nested{g: gorgonia.NewGraph(), contexts: 2 + 4*2}
	n.x = gorgonia.NewVector(n.g, tensor.Float32, gorgonia.WithShape(4), gorgonia.WithName("x"))
	n.op = &nestedOp{testOp: testOp{kind: "nested", arity: 1, shape: tensor.Shape{1}}, x: ix, y: iy, scratch: 5,
		nested: &exec.Nested{Graph: inner, Outputs: gorgonia.Nodes{iy}, Runs: 4}}
	sum := gorgonia.Must(gorgonia.ApplyOp(n.op, n.x))
	waste := &wasteOp{testOp{kind: "waste", shape: tensor.Shape{1}, arity: 1}}
	n.out = gorgonia.Must(gorgonia.ApplyOp(waste, sum))
	return n
}

// wasteOp hands its operand on and fills a large scratch.
type wasteOp struct{ testOp }

func (*wasteOp) Scratch([]tensor.Shape, int) int { return 1000 }

func (*wasteOp) Prepare(c *exec.Call) (exec.Step, error) {
	return func() error {
		for i := range c.Scratch {
			c.Scratch[i] = -7
		}
		c.Out.F32[0] = c.In[0].F32[0]
		return nil
	}, nil
}

func (n nested) compile(t *testing.T, cfg exec.Config, x []float32) *exec.Machine {
	t.Helper()
	cfg.Engine, cfg.Outputs = engine, gorgonia.Nodes{n.out}
	m := check.Get(exec.Compile(n.g, cfg))(t)
	check.OK(t, m.SetInput(n.x, x))
	return m
}

// TestNested runs a computation within an op, in scratch that other ops use as well, and
// counts its ops in the profile.
func TestNested(t *testing.T) {
	n := newNested(t)
	m := n.compile(t, exec.Config{}, []float32{1, 2, 3, 4})
	for range 3 {
		check.OK(t, m.RunAll())
		if v, err := m.Value(n.out); err != nil || v.F32[0] != 30 {
			t.Fatalf("got %v and error %v, want 30", v.F32, err)
		}
	}
	if f := m.FLOPs(); f != 4*5 {
		t.Errorf("%d FLOPs a run, want 20", f)
	}
	p := m.Profile()
	if p.FLOPs != 3*4*5 || p.Runs != 3 {
		t.Errorf("%d FLOPs in %d runs, want 60 in 3", p.FLOPs, p.Runs)
	}
	var sum int64
	kinds := map[string]exec.KindStats{}
	for _, k := range p.Kinds {
		kinds[k.Kind] = k
		sum += int64(k.Time)
	}
	if kinds["half"].FLOPs != 60 || kinds["half"].Time <= 0 || kinds["times"].Nodes != 1 || sum != int64(p.Time) {
		t.Errorf("kinds %+v of %v", p.Kinds, p.Time)
	}
	m.ResetProfile()
	if p := m.Profile(); p.FLOPs != 0 || p.Time != 0 {
		t.Errorf("after a reset %+v", p)
	}
	if a := testing.AllocsPerRun(20, func() {
		check.OK(t, m.RunAll())
	}); a != 0 {
		t.Errorf("a run allocates %v times", a)
	}
}

// TestNestedOnDevice: the computation runs on the device with the op, whose steps of the host work on copies, or else within the step of
// the host. All memory is given back.
func TestNestedOnDevice(t *testing.T) {
	for _, on := range []string{"ram", ""} {
		n, d := newNested(t), &ram{}
		n.op.on = on
		m := n.compile(t, exec.Config{Device: d}, []float32{1, 2, 3, 4})
		for range 3 {
			check.OK(t, m.RunAll())
			if v, err := m.Value(n.out); err != nil || v.F32[0] != 30 {
				t.Fatalf("got %v and error %v, want 30", v.F32, err)
			}
		}
		want := map[string]int{"waste": 1, "nested": 1}
		if on != "" {
			want = map[string]int{"waste": 1, "half": 1, "times": 1}
		}
		if got := m.OnHost(); !maps.Equal(got, want) {
			t.Errorf("with a step for %q: on the host %v, want %v", on, got, want)
		}
		if err := m.Close(); err != nil || d.held != 0 {
			t.Errorf("with a step for %q: %d words are held after the end (%v)", on, d.held, err)
		}
	}
}

// TestNestedMemory: the computation is in what the machine says that it needs.
func TestNestedMemory(t *testing.T) {
	n := newNested(t)
	n.op.scratch = 5000
	if got := n.compile(t, exec.Config{}, make([]float32, 4)).Memory(); got < 4*(5000+3*16) {
		t.Errorf("%d bytes", got)
	}
	_, err := exec.Compile(n.g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{n.out}, MaxBytes: 4 * 5000})
	if _, full := errors.AsType[*exec.MemoryError](err); !full {
		t.Errorf("got %v, want a refusal", err)
	}
}

// TestNestedEnds: the computation within an op ends with the run, between any two ops.
func TestNestedEnds(t *testing.T) {
	n := newNested(t)
	m := n.compile(t, exec.Config{}, []float32{1, 2, 3, 4})
	for i := range n.contexts {
		if err := m.Run(&looks{t.Context(), i}); !errors.Is(err, context.Canceled) {
			t.Errorf("look %d at the context: %v", i, err)
		}
	}
	if err := m.Run(&looks{t.Context(), n.contexts}); err != nil {
		t.Errorf("%d looks at the context: %v", n.contexts, err)
	}
}

// TestNestedNaN: the op within is named.
func TestNestedNaN(t *testing.T) {
	n := newNested(t)
	m := n.compile(t, exec.Config{CheckNaN: true}, []float32{1, 3e38, 3, 4})
	err := m.RunAll()
	if bad, ok := errors.AsType[*exec.NonFiniteError](err); !ok || bad.Op != "times{}" {
		t.Errorf("got %v, want times named", err)
	}
}

// TestNestedAlone runs the op outside of a machine.
func TestNestedAlone(t *testing.T) {
	n := newNested(t)
	v, err := exec.Do(n.op, tensor.New(tensor.WithShape(4), tensor.WithBacking([]float32{1, 2, 3, 4})))
	if err != nil || v.Data().([]float32)[0] != 30 {
		t.Errorf("got %v and error %v, want 30", v, err)
	}
}

// TestNestedRunOn: a number within an op that is not finite ends no run that others wait for.
func TestNestedRunOn(t *testing.T) {
	for _, d := range []exec.Device{nil, &ram{}} {
		n := newNested(t)
		told := 0
		m := n.compile(t, exec.Config{Device: d, CheckNaN: true, RunOn: true, Bind: map[*gorgonia.Node][]float32{n.out: make([]float32, 1)}}, []float32{1, 3e38, 3, 4})
		m.OnComplete(func(int) { told++ })
		err := m.RunAll()
		if bad, ok := errors.AsType[*exec.NonFiniteError](err); !ok || bad.Op != "times{}" || told != 1 {
			t.Errorf("got %v, want times named, and the op behind it run (%d times)", err, told)
		}
	}
}
