package exec_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// network is a small classifier with every kind of layer that keeps statistics.
func network(t testing.TB) *feed {
	r := rand.New(rand.NewPCG(5, 6))
	f := &feed{g: gorgonia.NewGraph()}
	input := func(name string, shape ...int) *gorgonia.Node {
		n, v := matrix(f.g, r, name, shape...)
		f.inputs, f.values = append(f.inputs, n), append(f.values, v)
		return n
	}
	x, w1, b1 := input("x", 7, 4), input("w1", 6, 4), input("b1", 6)
	gamma, beta, w2 := input("gamma", 6), input("beta", 6), input("w2", 3, 6)
	h := nn.Linear(x, w1, b1)
	h = arith.Add(h, nn.GELU(h))
	h = nn.LayerNorm(h, gamma, beta, 1e-5)
	h = nn.L2Normalize(nn.Linear(h, w2, nil), 1e-6)
	loss := arith.Mean(nn.GELU(h))
	grads := check.Get(gorgonia.Grad(loss, f.inputs...))(t)
	f.outputs = append(gorgonia.Nodes{loss}, grads...)
	return f
}

// TestTapeMachine runs one graph on Gorgonia's own machine too.
func TestTapeMachine(t *testing.T) {
	f := network(t)
	m := f.compile(t, exec.Config{})
	check.OK(t, m.RunAll())
	kept := make([]gorgonia.Value, len(f.outputs))
	for i, n := range f.outputs {
		gorgonia.Read(n, &kept[i])
	}
	for i, n := range f.inputs {
		check.OK(t, gorgonia.Let(n, tensor.New(tensor.WithShape(n.Shape()...), tensor.WithBacking(f.values[i]))))
	}
	tape := gorgonia.NewTapeMachine(f.g)
	defer tape.Close()
	check.OK(t, tape.RunAll())
	for k, n := range f.outputs {
		got := check.Get(m.Value(n))(t)
		var want []float32
		switch d := kept[k].Data().(type) {
		case float32:
			want = []float32{d}
		case []float32:
			want = d
		}
		if len(want) != len(got.F32) {
			t.Fatalf("output %d: %d values, Gorgonia has %d", k, len(got.F32), len(want))
		}
		for i := range want {
			if d := math.Abs(float64(got.F32[i] - want[i])); !(d <= 1e-6) {
				t.Errorf("output %d: %v[%d] is %v, Gorgonia has %v", k, n, i, got.F32[i], want[i])
			}
		}
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	f := network(t)
	m := f.compile(t, exec.Config{})
	run := func() {
		check.OK(t, m.RunAll())
	}
	if n := allocs.PerRun(20, run); n != 0 {
		t.Errorf("a run allocates %v times", n)
	}
	set := func() {
		for i, n := range f.inputs {
			check.OK(t, m.SetInput(n, f.values[i]))
		}
	}
	// An interface holding a slice is made by the caller for each input.
	if n := allocs.PerRun(20, set); n > float64(len(f.inputs)) {
		t.Errorf("binding %d inputs allocates %v times", len(f.inputs), n)
	}
}

// TestGenericOps mixes Gorgonia's own ops in.
func TestGenericOps(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	f := &feed{g: gorgonia.NewGraph()}
	x, v := matrix(f.g, r, "x", 3, 4)
	f.inputs, f.values = gorgonia.Nodes{x}, [][]float32{v}
	h := gorgonia.Must(gorgonia.Tanh(nn.GELU(x)))
	sum := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(h, h))))
	two := gorgonia.NewConstant(float32(2))
	loss := arith.WeightedSum([]float32{3, 1}, gorgonia.Must(gorgonia.Mul(sum, two)), sum)
	flat := gorgonia.Must(gorgonia.Reshape(h, tensor.Shape{12}))
	grads := check.Get(gorgonia.Grad(loss, x))(t)
	f.outputs = gorgonia.Nodes{loss, flat, grads[0]}
	m := f.compile(t, exec.Config{})
	for range 2 {
		check.OK(t, m.RunAll())
	}
	var want float64
	a := check.Get(m.Value(flat))(t)
	gradient := check.Get(m.Value(grads[0]))(t)
	for i, v := range v {
		v := float64(v)
		cdf := 0.5 * math.Erfc(-v/math.Sqrt2)
		th := math.Tanh(v * cdf)
		want += 7 * th * th
		if !(math.Abs(float64(a.F32[i])-th) <= 1e-5) {
			t.Errorf("tanh[%d] is %v, want %v", i, a.F32[i], th)
		}
		slope := cdf + v*math.Exp(-v*v/2)/math.Sqrt(2*math.Pi)
		if w := 14 * th * (1 - th*th) * slope; !(math.Abs(float64(gradient.F32[i])-w) <= 1e-4) {
			t.Errorf("gradient[%d] is %v, want %v", i, gradient.F32[i], w)
		}
	}
	if got, err := m.Scalar(loss); err != nil || !(math.Abs(float64(got)-want) <= 1e-4) {
		t.Errorf("loss is %v (%v), want %v", got, err, want)
	}
	if _, err := m.Scalar(flat); err == nil {
		t.Error("a vector passed for a scalar")
	}
}

// TestFirstNaN names the op that makes the first bad number, also when it is an
// auxiliary result such as the gradient of a layer norm's scale.
func TestFirstNaN(t *testing.T) {
	f := network(t)
	m := f.compile(t, exec.Config{CheckNaN: true})
	check.OK(t, m.RunAll())
	f.values[1][3] = float32(math.Inf(1)) // in w1
	var bad *exec.NonFiniteError
	if err := m.RunAll(); !errors.As(err, &bad) || !strings.HasPrefix(bad.Op, "linear{") {
		t.Errorf("got %v, want the first linear layer", err)
	}

	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 2), gorgonia.WithName("x"))
	gamma := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("gamma"))
	dy := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 2), gorgonia.WithName("dy"))
	loss := arith.WeightedSum([]float32{1, 1}, arith.Sum(nn.LayerNorm(x, gamma, gamma, 0)), arith.Sum(dy))
	// Gradients of 3e38 in two rows: dbeta is finite for each row, not in sum.
	big := gorgonia.NewScalar(g, tensor.Float32, gorgonia.WithName("big"))
	grads := check.Get(gorgonia.Grad(arith.MulScalar(loss, big), gamma))(t)
	f = &feed{g: g, inputs: gorgonia.Nodes{x, gamma, dy, big}, outputs: grads,
		values: [][]float32{{1, 2, 3, 5}, {0, 0}, {0, 0, 0, 0}, {3e38}}}
	m = f.compile(t, exec.Config{CheckNaN: true})
	if err := m.RunAll(); !errors.As(err, &bad) || !strings.HasPrefix(bad.Op, "layer norm dx") {
		t.Errorf("got %v, want the layer norm's gradient", err)
	}
}

func TestInputs(t *testing.T) {
	f := network(t)
	m := check.Get(exec.Compile(f.g, exec.Config{Engine: engine, Outputs: f.outputs}))(t)
	check.Error(t, m.RunAll(), "has no value")
	x := f.inputs[0]
	for _, c := range []struct {
		data any
		want string
	}{
		{make([]int32, 28), "input x wants float32 (got []int32)"},
		{make([]float32, 27), "input x has 28 elements (got 27)"},
		{[]float32(nil), "input x has 28 elements (got 0)"},
		{make([]float64, 28), "input x wants float32 (got []float64)"},
		{nil, "input x wants float32 (got <nil>)"},
	} {
		check.Error(t, m.SetInput(x, c.data), c.want)
	}
	for i, n := range f.inputs { // a refused value leaves no trace
		check.OK(t, m.SetInput(n, f.values[i]))
	}
	check.OK(t, m.RunAll())
	before := check.Get(m.Scalar(f.outputs[0]))(t)
	check.OK(t, m.SetInput(x, make([]float32, 28)))
	check.OK(t, m.RunAll())
	if after, _ := m.Scalar(f.outputs[0]); after == before {
		t.Error("another input made no difference")
	}
	other := gorgonia.NewScalar(f.g, tensor.Float32, gorgonia.WithName("unused"))
	if err := m.SetInput(other, []float32{1}); err != nil {
		t.Errorf("an input that nothing depends on: %v", err)
	}
	if _, err := m.Value(other); err == nil {
		t.Error("the value of a node that was not compiled")
	}
}

// TestLet reads values anew at every run, as other machines do.
func TestLet(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewScalar(g, tensor.Float32, gorgonia.WithName("x"))
	out := nn.GELU(x)
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{out}}))(t)
	for _, v := range []float32{0, 8} { // gelu(0) = 0, gelu(8) = 8 to float32
		check.OK(t, gorgonia.Let(x, v))
		check.OK(t, m.RunAll())
		if got, err := m.Scalar(out); err != nil || got != v {
			t.Errorf("gelu(%v) is %v (%v)", v, got, err)
		}
	}
}

// TestDetachedInput names an input: it has no memory in the plan.
func TestDetachedInput(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("x"))
	alias := op.Detach(op.Detach(x))
	out := arith.Add(alias, x)
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{out, alias}}))(t)
	for _, v := range [][]float32{{1, 2}, {3, 4}} {
		check.OK(t, m.SetInput(x, v))
		check.OK(t, m.RunAll())
		a, err := m.Value(alias)
		if err != nil || a.F32[0] != v[0] || a.F32[1] != v[1] {
			t.Errorf("alias is %v (%v), want %v", a.F32, err, v)
		}
		if a, err = m.Value(out); err != nil || a.F32[0] != 2*v[0] || a.F32[1] != 2*v[1] {
			t.Errorf("sum is %v (%v), want twice %v", a.F32, err, v)
		}
	}
}

func TestValues(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("x"))
	h := arith.Add(x, x)
	out := nn.GELU(h) // in place
	m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{out}}))(t)
	if _, err := m.Value(h); err == nil {
		t.Error("the value of an intermediate result, whose memory the output took over")
	}
	if m.Nodes() != 2 {
		t.Errorf("%d nodes run, want 2", m.Nodes())
	}
}

func TestCompileErrors(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("x"))
	d := gorgonia.NewVector(g, tensor.Float64, gorgonia.WithShape(2), gorgonia.WithName("d"))
	out, other := nn.GELU(x), arith.Add(x, x)
	for _, c := range []struct {
		want string
		cfg  exec.Config
	}{
		{"no outputs", exec.Config{}},
		{"only float32 and int32", exec.Config{Outputs: gorgonia.Nodes{gorgonia.Must(gorgonia.Tanh(d))}}},
		{"is not needed", exec.Config{Outputs: gorgonia.Nodes{out}, Bind: map[*gorgonia.Node][]float32{other: make([]float32, 2)}}},
		{"has 3 elements", exec.Config{Outputs: gorgonia.Nodes{out}, Bind: map[*gorgonia.Node][]float32{out: make([]float32, 3)}}},
		{"cannot bind", exec.Config{Outputs: gorgonia.Nodes{out}, Bind: map[*gorgonia.Node][]float32{x: make([]float32, 2)}}},
	} {
		c.cfg.Engine = engine
		check.Fails(exec.Compile(g, c.cfg))(t, c.want)
	}
	check.Fails(exec.Compile(g, exec.Config{Outputs: gorgonia.Nodes{out}}))(t, "no engine")
}

func TestProfile(t *testing.T) {
	f := network(t)
	m := f.compile(t, exec.Config{})
	for range 3 {
		check.OK(t, m.RunAll())
	}
	p := m.Profile()
	if p.Runs != 3 || p.Time <= 0 {
		t.Errorf("profile of 3 runs: %+v", p)
	}
	// Linear layers: 7x6x4 and 7x3x6 multiplications forward, twice that backward.
	if want := int64(2 * 3 * (7*6*4 + 7*3*6)); m.FLOPs() != want || p.FLOPs != 3*want {
		t.Errorf("%d FLOPs, want %d", m.FLOPs(), want)
	}
	m.ResetProfile()
	if p := m.Profile(); p.Runs != 0 || p.Time != 0 {
		t.Errorf("profile after a reset: %+v", p)
	}
}
