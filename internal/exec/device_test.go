package exec_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ram is a device whose memory only its own steps and copies reach.
type ram struct {
	fetched, stored int // copies
	held            int // words
	most            int // words that it has; 0: any number
	fails           bool
}

func (d *ram) Name() string { return "ram" }

func (d *ram) Alloc(words int) (exec.Memory, error) {
	if d.most > 0 && d.held+words > d.most {
		return nil, errors.New("there is no more")
	}
	d.held += words
	m := &ramMemory{d, make([]float32, words)}
	for i := range m.words { // what was there before must not matter
		m.words[i] = float32(math.NaN())
	}
	return m, nil
}

type ramMemory struct {
	d     *ram
	words []float32
}

func (m *ramMemory) Buffer(word int, s exec.Spec) exec.Buffer {
	n := s.Words()
	view := make([]float32, n)
	for i := range view {
		view[i] = float32(math.NaN())
	}
	return &ramBuffer{m.d, m.words[word:][:n], view, s.Array(view)}
}

func (m *ramMemory) Free() error {
	m.d.held -= len(m.words)
	m.words = nil
	return nil
}

type ramBuffer struct {
	d           *ram
	words, view []float32
	host        exec.Array
}

func (b *ramBuffer) Host() exec.Array { return b.host }

func (b *ramBuffer) Fetch() error {
	b.d.fetched++
	copy(b.view, b.words)
	if b.d.fails {
		return errors.New("the bus is gone")
	}
	return nil
}

func (b *ramBuffer) Store() error {
	b.d.stored++
	copy(b.words, b.view)
	return nil
}

// counted returns a value (3, 4) of 0, 1, 2 ... in memory of a device's.
func counted(t *testing.T, d exec.Device) *ramBuffer {
	t.Helper()
	mem := check.Get(d.Alloc(12))(t)
	b := mem.Buffer(0, exec.Spec{Shape: tensor.Shape{3, 4}}).(*ramBuffer)
	for i := range b.words {
		b.words[i] = float32(i)
	}
	return b
}

// onRAM returns 2x by a step of the device, or by one of the host's.
func onRAM(x *gorgonia.Node) *gorgonia.Node {
	double := func(y, x []float32) {
		for i := range y {
			y[i] = 2 * x[i]
		}
	}
	return op.Apply(&op.Op{
		Kind: "double", Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error { double(c.Out.F32, c.In[0].F32); return nil }, nil
		},
		On: map[string]exec.DeviceStep{"ram": {Prepare: func(c *exec.DeviceCall) (exec.Step, error) {
			if !c.In[0].Shape.Eq(c.Out.Shape) || c.In[0].Type != exec.Float32 {
				return nil, errors.New("operands are not as the graph has them")
			}
			return func() error {
				double(c.Out.Buffer.(*ramBuffer).words, c.In[0].Buffer.(*ramBuffer).words)
				return nil
			}, nil
		}}},
	}, x)
}

// TestDevice wants the same bits from a device on which all ops are the host's, with
// results that share memory, are named under other shapes and lie in the caller's.
func TestDevice(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		f := randomGraph(t, r, 3+r.IntN(20))
		var want, got []float32
		for _, d := range []*ram{nil, {}} {
			bound := make([]float32, 25) // of w
			cfg := exec.Config{Bind: map[*gorgonia.Node][]float32{f.outputs[2]: bound}, CheckNaN: seed%2 == 0}
			values := &want
			if d != nil {
				cfg.Device, values = d, &got
			}
			m := f.compile(t, cfg)
			for range 2 {
				check.OK(t, m.RunAll())
			}
			*values = slices.Clone(bound)
			for _, n := range f.outputs {
				v := check.Get(m.Value(n))(t)
				*values = append(*values, v.F32...)
			}
			if err := m.Close(); err != nil || d != nil && d.held != 0 {
				t.Errorf("seed %d: close leaves %d words (%v)", seed, d.held, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: the device gives\n%v, the host\n%v", seed, got, want)
		}
	}
}

// TestDeviceHalf has results in bfloat16 and dropout masks of int32 on a device.
func TestDeviceHalf(t *testing.T) {
	e := check.Get(kernel.New(kernel.Options{Backend: "plain", Threads: 1, Precision: "bf16"}))(t)
	defer e.Close()
	var want []float32
	for _, d := range []exec.Device{nil, &ram{}} {
		r := rand.New(rand.NewPCG(7, 8))
		g := gorgonia.NewGraph()
		x, xs := matrix(g, r, "x", 20, 33)
		w, ws := matrix(g, r, "w", 33, 33)
		key := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("key"))
		y := nn.LinearGELU(nn.Dropout(x, nn.DropoutBits(key, 0, 20, 33, .5), .5), w, nil)
		loss := arith.Sum(nn.Linear(y, w, nil))
		grads := check.Get(gorgonia.Grad(loss, x, w))(t)
		m, err := exec.Compile(g, exec.Config{Engine: e, Device: d, Outputs: append(gorgonia.Nodes{loss}, grads...)})
		if err != nil {
			t.Fatal(err)
		}
		for n, v := range map[*gorgonia.Node]any{x: xs, w: ws, key: []int32{1, 2}} {
			check.OK(t, m.SetInput(n, v))
		}
		check.OK(t, m.RunAll())
		var got []float32
		for _, n := range append(gorgonia.Nodes{loss}, grads...) {
			v := check.Get(m.Value(n))(t)
			got = append(got, v.F32...)
		}
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("the device gives\n%v, the host\n%v", got, want)
		}
	}
}

// TestDeviceStep runs ops that have steps for the device: nothing comes to the host but
// what it asks for, and an input may stay on the device.
func TestDeviceStep(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	g := gorgonia.NewGraph()
	x, xs := matrix(g, r, "x", 3, 4)
	out := onRAM(onRAM(onRAM(x)))
	d := &ram{}
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Device: d, Outputs: gorgonia.Nodes{out}}))(t)
	run := func(what string, in []float32, fetched, stored int) {
		t.Helper()
		d.fetched, d.stored = 0, 0
		check.OK(t, m.RunAll())
		if d.fetched != fetched || d.stored != stored {
			t.Errorf("%s: %d values came to the host and %d to the device, want %d and %d", what, d.fetched, d.stored, fetched, stored)
		}
		v := check.Get(m.Value(out))(t)
		for i, x := range in {
			if v.F32[i] != 8*x {
				t.Fatalf("%s: element %d is %v, want %v", what, i, v.F32[i], 8*x)
			}
		}
	}
	check.OK(t, m.SetInput(x, xs))
	run("an input of the host's", xs, 0, 1)
	xs[2] = 5 // read at every run
	run("new values", xs, 0, 1)

	resident := counted(t, d)
	check.OK(t, m.SetInput(x, resident))
	run("an input of the device's", resident.words, 0, 0)
	check.OK(t, m.SetInput(x, xs))
	run("the host's again", xs, 0, 1)
	short := check.Get(d.Alloc(3))(t)
	check.Error(t, m.SetInput(x, short.Buffer(0, exec.Spec{Shape: tensor.Shape{3}})), "has 12 elements (got 3)")

	// The same graph on the host.
	h := check.Get(exec.Compile(g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{out}}))(t)
	check.OK(t, h.SetInput(x, xs))
	check.OK(t, h.RunAll())
	if v, err := h.Value(out); err != nil || v.F32[2] != 40 {
		t.Errorf("on the host: %v (%v)", v, err)
	}
}

// TestDeviceMixed has a step of the host's between two of the device's, on an input that
// both read.
func TestDeviceMixed(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	g := gorgonia.NewGraph()
	x, xs := matrix(g, r, "x", 3, 4)
	out := onRAM(arith.Add(onRAM(x), x)) // 6x
	d := &ram{}
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Device: d, Outputs: gorgonia.Nodes{out}}))(t)
	resident := counted(t, d)
	copy(resident.words, xs)
	for _, in := range []any{xs, resident} {
		check.OK(t, m.SetInput(x, in))
		check.OK(t, m.RunAll())
		v := check.Get(m.Value(out))(t)
		for i, x := range xs {
			if d := math.Abs(float64(v.F32[i] - 6*x)); d > 1e-6 {
				t.Fatalf("%T: element %d is %v, want %v", in, i, v.F32[i], 6*x)
			}
		}
	}
}

// TestDeviceErrors: what the device refuses is an error, and nothing stays behind.
func TestDeviceErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	g := gorgonia.NewGraph()
	x, xs := matrix(g, r, "x", 30, 4)
	out := arith.Add(onRAM(x), x)
	cfg := exec.Config{Engine: engine, Outputs: gorgonia.Nodes{out}}
	for most, want := range map[int]string{10: "memory of ram: there is no more", 200: "inputs to ram: memory for input x: there is no more"} {
		d := &ram{most: most}
		cfg.Device = d
		m, err := exec.Compile(g, cfg)
		if err == nil { // an input has memory from the first run on
			check.OK(t, m.SetInput(x, xs))
			err = errors.Join(m.RunAll(), m.Close())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a device of %d words: got error %v, want one with %q", most, err, want)
		}
		if d.held != 0 {
			t.Errorf("a device of %d words: %d are not given back", most, d.held)
		}
	}
	bound := cfg // a result that lies with the caller has memory of its own
	bound.Bind = map[*gorgonia.Node][]float32{out: make([]float32, 120)}
	full := &ram{most: 110}
	bound.Device = full
	if _, err := exec.Compile(g, bound); err == nil || !strings.Contains(err.Error(), "memory of ram: there is no more") || full.held != 0 {
		t.Errorf("no room for a bound result: got error %v, and %d words are held", err, full.held)
	}
	d := &ram{}
	cfg.Device = d
	m := check.Get(exec.Compile(g, cfg))(t)
	check.OK(t, m.SetInput(x, xs))
	check.OK(t, m.RunAll())
	d.fails = true
	check.Error(t, m.RunAll(), "the bus is gone")
	check.Fails(m.Value(out))(t, "the bus is gone")
}

// TestDeviceAux has a step of the device with an int32 input of the caller's and an
// auxiliary result that a step of the host reads.
func TestDeviceAux(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	g := gorgonia.NewGraph()
	x, xs := matrix(g, r, "x", 3, 4)
	k := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(1), gorgonia.WithName("k"))
	same := func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil }
	times := op.Apply(&op.Op{ // k*x, and beside it x+1
		Kind: "times", Diff: []bool{false, false}, Shape: same,
		Aux: func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[0]}} },
		Host: func(*exec.Call) (exec.Step, error) {
			return nil, errors.New("the step of the host is not wanted")
		},
		On: map[string]exec.DeviceStep{"ram": {Prepare: func(c *exec.DeviceCall) (exec.Step, error) {
			return func() error {
				out, aux, in := c.Out.Buffer.(*ramBuffer).words, c.Aux[0].Buffer.(*ramBuffer).words, c.In[0].Buffer.(*ramBuffer).words
				k := int32(math.Float32bits(c.In[1].Buffer.(*ramBuffer).words[0]))
				for i, v := range in {
					out[i], aux[i] = float32(k)*v, v+1
				}
				return nil
			}, nil
		}}},
	}, x, k)
	out := op.Apply(&op.Op{
		Kind: "plus auxiliary", Diff: []bool{false}, Shape: same,
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error {
				for i, v := range c.In[0].F32 {
					c.Out.F32[i] = v + c.InAux[0][0].F32[i]
				}
				return nil
			}, nil
		},
	}, times)
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Device: &ram{}, Outputs: gorgonia.Nodes{out}}))(t)
	for n, v := range map[*gorgonia.Node]any{x: xs, k: []int32{3}} {
		check.OK(t, m.SetInput(n, v))
	}
	check.OK(t, m.RunAll())
	v := check.Get(m.Value(out))(t)
	for i, x := range xs {
		if want := 3*x + (x + 1); v.F32[i] != want {
			t.Fatalf("element %d is %v, want %v", i, v.F32[i], want)
		}
	}
}
