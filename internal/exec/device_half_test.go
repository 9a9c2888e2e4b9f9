package exec_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// rounding is ram with a step that rounds.
type rounding struct {
	ram
	rounds int // steps that were prepared
}

func (d *rounding) PrepareRound(c *exec.DeviceCall) (exec.Step, error) {
	d.rounds++
	return func() error {
		vector.ToBF16(onDevice(c.Out).BF16, onDevice(c.In[0]).F32)
		return nil
	}, nil
}

// onDevice returns the values of an operand in the memory of ram.
func onDevice(o exec.Operand) exec.Array { return o.Array(o.Buffer.(*ramBuffer).words) }

// each is an op of one operand whose step makes every element from one, on the host and on ram.
type each struct {
	kind string
	f    func(x float32) float32
	half exec.Half // on ram
	// onHost has ram do without a step; rounds has f see values that are rounded, which may be bfloat16.
	onHost, rounds bool
	inPlace        bool
	accumulates    bool
	saw            *[]exec.Type // of operands of steps on ram
}

func (e each) apply(x *gorgonia.Node) *gorgonia.Node {
	run := func(out, in exec.Array, accumulate bool) {
		values := make([]float32, in.Len())
		if in.BF16 != nil {
			vector.FromBF16(values, in.BF16)
		} else if copy(values, in.F32); e.rounds {
			vector.RoundBF16(values, values)
		}
		for i, v := range values {
			if values[i] = e.f(v); accumulate {
				values[i] += out.F32[i]
			}
		}
		if out.BF16 != nil {
			vector.ToBF16(out.BF16, values)
		} else {
			copy(out.F32, values)
		}
	}
	o := &op.Op{
		Kind: e.kind, Diff: []bool{false}, Accumulates: e.accumulates, On: map[string]exec.DeviceStep{"ram": {Half: e.half}},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error {
				if c.In[0].F32 == nil && !e.rounds || c.Out.F32 == nil {
					panic(e.kind + ": the host's step finds bfloat16")
				}
				run(c.Out, c.In[0], c.Accumulate)
				return nil
			}, nil
		},
	}
	if e.rounds {
		o.ReadsHalf = []int{0}
	}
	if e.inPlace {
		o.InPlace = []int{0}
	}
	if !e.onHost {
		o.On = map[string]exec.DeviceStep{"ram": {Half: e.half, Prepare: func(c *exec.DeviceCall) (exec.Step, error) {
			if e.saw != nil {
				*e.saw = append(*e.saw, c.In[0].Type)
			}
			return func() error {
				run(onDevice(c.Out), onDevice(c.In[0]), c.Accumulate)
				if s := c.Out.Shadow; s != nil {
					vector.ToBF16(exec.Spec{Shape: c.Out.Shape, Type: exec.BFloat16}.Array(s.(*ramBuffer).words).BF16, onDevice(c.Out).F32)
				}
				return nil
			}, nil
		}}}
	}
	return op.Apply(o, x)
}

var (
	shadows = exec.Half{Shadows: []int{op.Output}}
	rounds  = exec.Half{Rounds: []int{0}}
	affine  = func(x float32) float32 { return 1.17*x + 0.013 }
	third   = func(x float32) float32 { return x / 3 }
)

// TestDeviceShadow looks at which steps read a shadow and what makes it.
func TestDeviceShadow(t *testing.T) {
	for _, c := range []struct {
		name           string
		writer         each
		readers, fully int // of the writer's result: those that round it, and those that do not
		cols           int
		want           exec.Type // that the former find
		rounds         int
	}{
		{"the op writes it", each{half: shadows}, 1, 1, 8, exec.BFloat16, 0},
		{"for several", each{half: shadows}, 3, 1, 8, exec.BFloat16, 0},
		{"a step of its own", each{}, 2, 1, 8, exec.BFloat16, 1},
		{"not worth a step", each{}, 1, 1, 8, exec.Float32, 0},
		{"an op on the host", each{half: shadows, onHost: true}, 1, 1, 8, exec.BFloat16, 1},
		{"rows that are not aligned", each{half: shadows}, 3, 1, 12, exec.Float32, 0},
		{"bfloat16 alone", each{half: exec.Half{Writes: []int{op.Output}, Shadows: []int{op.Output}}}, 2, 0, 8, exec.BFloat16, 0},
		{"bfloat16 alone, on the host", each{half: exec.Half{Writes: []int{op.Output}}, onHost: true}, 2, 0, 8, exec.BFloat16, 0},
	} {
		for _, half := range []bool{true, false} {
			g := gorgonia.NewGraph()
			x, xs := matrix(g, rand.New(rand.NewPCG(1, 2)), "x", 3, c.cols)
			c.writer.kind, c.writer.f = "writer", affine
			y := c.writer.apply(x)
			var saw, whole []exec.Type
			var outputs gorgonia.Nodes
			for i := range c.readers {
				e := each{kind: "reader" + string(rune('a'+i)), f: third, half: rounds, rounds: true, saw: &saw}
				outputs = append(outputs, e.apply(y))
			}
			for i := range c.fully {
				outputs = append(outputs, each{kind: "whole" + string(rune('a'+i)), f: third, saw: &whole}.apply(y))
			}
			d, e, want := &rounding{}, halfEngine, c.want
			if !half {
				e, want, c.rounds = engine, exec.Float32, 0
			}
			m := check.Get(exec.Compile(g, exec.Config{Engine: e, Device: d, Outputs: outputs}))(t)
			check.OK(t, m.SetInput(x, xs))
			check.OK(t, m.RunAll())
			if !slices.Equal(saw, slices.Repeat([]exec.Type{want}, c.readers)) || !slices.Equal(whole, make([]exec.Type, c.fully)) ||
				d.rounds != c.rounds {
				t.Errorf("%s, half %t: steps that round find %v, others %v, and %d steps round, want %v and %d", c.name, half, saw, whole,
					d.rounds, want, c.rounds)
			}
			if err := m.CheckLayout(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			for i, n := range outputs {
				v := check.Get(m.Value(n))(t)
				in := []float32{affine(xs[5])}
				if i < c.readers {
					vector.RoundBF16(in, in)
				}
				if v.F32[5] != third(in[0]) {
					t.Errorf("%s: output %d is %v, want %v", c.name, i, v.F32[5], third(in[0]))
				}
			}
		}
	}
}

// TestDeviceShadowGraphs wants the same bits with shadows as on the host, in graphs whose results are written over, added to,
// named and computed again.
func TestDeviceShadowGraphs(t *testing.T) {
	shaded, again := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 17))
		g := gorgonia.NewGraph()
		x, xs := matrix(g, r, "x", 3, 8)
		pool := gorgonia.Nodes{each{kind: "first", f: affine}.apply(x)}
		rc := exec.Recompute{}
		pick := func() *gorgonia.Node {
			if r.IntN(3) > 0 && (rc.Backward == 0 || r.IntN(2) == 0) {
				return pool[max(0, len(pool)-1-r.IntN(3))]
			}
			return pool[r.IntN(len(pool))]
		}
		var saw []exec.Type
		size := 4 + r.IntN(24)
		for i := range size {
			if i == size/2 {
				rc.Backward = exec.NextID(g)
			}
			e := each{kind: string(rune('a' + i)), f: affine, onHost: r.IntN(4) == 0, inPlace: r.IntN(2) == 0}
			var n *gorgonia.Node
			what := r.IntN(7)
			if what == 3 && i < size/2 { // sums of the forward pass are no place to add to, see exec.Summer
				what = 2
			}
			switch what {
			case 0, 1:
				e.half, e.rounds, e.f, e.saw = rounds, true, third, &saw
				n = e.apply(pick())
			case 2:
				e.half = shadows
				n = e.apply(pick())
			case 3: // a sum that the second op adds to
				early := pick()
				e.half, e.inPlace, e.accumulates = shadows, false, r.IntN(2) == 0
				n = gorgonia.Must(gorgonia.Add(each{kind: e.kind + "early", f: third}.apply(early), e.apply(pick())))
			case 4: // values that bfloat16 holds
				e.half, e.rounds, e.f = exec.Half{Writes: []int{op.Output}}, true, func(x float32) float32 { return -x }
				n = e.apply(pick())
			case 5:
				e.half = exec.Half{Reads: []int{0}}
				n = e.apply(pick())
			case 6:
				n = op.Detach(pick())
			}
			pool = append(pool, n)
		}
		outputs := slices.Clone(pool[max(0, len(pool)-3):])
		for at := int64(r.IntN(3)); at < rc.Backward; {
			to := min(rc.Backward, at+1+int64(r.IntN(8)))
			rc.Blocks = append(rc.Blocks, exec.Block{From: at, To: to})
			at = to + int64(r.IntN(2))
		}
		var want []float32
		nodes := 0
		for i, cfg := range []exec.Config{{}, {Device: &rounding{}}, {Recompute: rc}, {Device: &rounding{}, Recompute: rc}} {
			cfg.Engine, cfg.Outputs = halfEngine, outputs
			m := check.Get(exec.Compile(g, cfg))(t)
			if err := m.CheckLayout(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			check.OK(t, m.SetInput(x, xs))
			for range 2 {
				check.OK(t, m.RunAll())
			}
			var got []float32
			for _, n := range outputs {
				v := check.Get(m.Value(n))(t)
				got = append(got, v.F32...)
			}
			if want == nil {
				want, nodes = got, m.Nodes()
			} else if !slices.Equal(got, want) {
				t.Errorf("seed %d: plan %d gives\n%v, the host\n%v", seed, i, got, want)
			}
			again += m.Nodes() - nodes
		}
		if slices.Contains(saw, exec.BFloat16) {
			shaded++
		}
	}
	if shaded < 20 || again < 40 {
		t.Errorf("%d graphs have shadows, and %d nodes are computed again: too few to say anything", shaded, again)
	}
}
