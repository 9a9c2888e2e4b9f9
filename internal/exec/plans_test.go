package exec_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/arith"
	attentionops "github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// randomTransformer grows a network of the layers that transformers are made of, with dropout, in any order and between any two
// states, and cuts it into blocks.
func randomTransformer(t *testing.T, r *rand.Rand) *transformer {
	t.Helper()
	const heads, keep = 2, 0.75
	batch, tokens, d := 1+r.IntN(3), 2+r.IntN(6), 16
	if r.IntN(4) == 0 { // large enough for several threads
		batch, tokens = 5, 60
	}
	rows := batch * tokens
	m := &transformer{feed: feed{g: gorgonia.NewGraph()}, key: []int32{17, 23}}
	input := func(name string, shape ...int) *gorgonia.Node {
		n, v := matrix(m.g, r, fmt.Sprint(name, len(m.inputs)), shape...)
		m.inputs, m.values = append(m.inputs, n), append(m.values, v)
		return n
	}
	linear := func(x *gorgonia.Node, in, out int) *gorgonia.Node {
		return nn.Linear(x, input("w", out, in), input("b", out))
	}
	m.keyIn = gorgonia.NewVector(m.g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("key"))
	site := uint64(0)
	bits := func(n, cols int) *gorgonia.Node {
		site++
		return nn.DropoutBits(m.keyIn, site, n, cols, keep)
	}
	x := input("x", rows, d)
	states := gorgonia.Nodes{x}
	earlier := func() *gorgonia.Node { return states[max(0, len(states)-1-r.IntN(4))] }
	layer := func() *gorgonia.Node {
		switch r.IntN(9) {
		case 0:
			h := linear(nn.LayerNorm(x, input("gamma", d), input("beta", d), 1e-5), d, 3*d)
			h = attentionops.SelfAttention(attentionops.SelfArgs{QKV: h, Bits: bits(batch*heads*tokens, tokens), Len: tokens, Heads: heads, Keep: keep})
			return arith.Add(x, nn.Dropout(linear(h, d, d), bits(rows, d), keep))
		case 1:
			h := attentionops.CrossAttention(attentionops.CrossArgs{Q: linear(x, d, d), KV: linear(earlier(), d, 2*d), QueryLen: tokens, KeyLen: tokens, Heads: heads, Keep: 1})
			return arith.Add(linear(h, d, d), x)
		case 2, 3:
			name := []string{"gelu", "gelu_tanh", "quick_gelu", "silu"}[r.IntN(4)]
			h := linear(nn.LinearActivated(x, input("w", 4*d, d), input("b", 4*d), name), 4*d, d)
			sum, norm := nn.AddNorm(nn.AddNormArgs{H: h, X: earlier(), Bits: bits(rows, d), Gamma: input("gamma", d), Beta: input("beta", d), Keep: keep, Eps: 1e-5})
			if r.IntN(2) == 0 {
				states = append(states, sum)
			}
			return norm
		case 4:
			return arith.Add(x, op.Detach(nn.GELU(earlier())))
		case 5:
			k := 1 + r.IntN(rows-1)
			return layout.ConcatRows(layout.StridedRows(x, k, 1, rows-k), layout.StridedRows(earlier(), 0, 1, k))
		case 6:
			return arith.Add(nn.L2Normalize(x, 1e-6), earlier())
		case 7:
			return nn.GELUDropout(linear(x, d, d), bits(rows, d), keep)
		}
		return arith.Add(earlier(), nn.SiLU(x))
	}
	for range 2 + r.IntN(4) {
		from := exec.NextID(m.g)
		for range 1 + r.IntN(3) {
			x = layer()
			states = append(states, x)
		}
		if to := exec.NextID(m.g); r.IntN(5) > 0 && to > from {
			m.blocks = append(m.blocks, exec.Block{From: from, To: to})
		}
	}
	loss := arith.Mean(nn.GELU(arith.Add(x, nn.Dropout(earlier(), bits(rows, d), keep))))
	m.backward = exec.NextID(m.g)
	wrt := differentiable(m.g, loss, m.inputs)
	grads := check.Get(gorgonia.Grad(loss, wrt...))(t)
	m.outputs = append(gorgonia.Nodes{loss}, grads...)
	if n := earlier(); n.Op() != nil && r.IntN(2) == 0 {
		m.outputs = append(m.outputs, n) // of a block perhaps
	}
	slices.SortFunc(m.outputs[1:], func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	m.outputs = slices.Compact(m.outputs) // two biases may have one gradient
	return m
}

// differentiable returns the inputs that a node has a gradient for.
func differentiable(g *gorgonia.ExprGraph, of *gorgonia.Node, inputs gorgonia.Nodes) (list gorgonia.Nodes) {
	reached := map[int64]bool{}
	var visit func(n *gorgonia.Node)
	visit = func(n *gorgonia.Node) {
		if reached[n.ID()] {
			return
		}
		reached[n.ID()] = true
		var operands gorgonia.Nodes
		for it := g.From(n.ID()); it.Next(); {
			operands = append(operands, it.Node().(*gorgonia.Node))
		}
		if o := op.Of(n); o != nil {
			for i, flows := range o.Diff {
				if flows {
					visit(operands[i])
				}
			}
		}
	}
	visit(of)
	for _, n := range inputs {
		if reached[n.ID()] {
			list = append(list, n)
		}
	}
	return list
}

// TestPlans computes random networks by every plan that there is - kept or computed again, in memory of its own, of the caller's, lent or
// shared, on the host or a device, with a look at every number - in both precisions, and wants the same bits of all.
func TestPlans(t *testing.T) {
	var again, halved, borrowed int
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 18))
		f := randomTransformer(t, r)
		full := int64(0)
		for _, o := range []kernel.Options{
			{Backend: "plain", Threads: 1}, {Backend: "builtin", Threads: 3},
			{Backend: "plain", Threads: 3, Precision: "bf16"}, {Backend: "builtin", Threads: 1, Precision: "bf16"},
		} {
			e := check.Get(kernel.New(o))(t)
			want := compileWith(t, f, exec.Config{Engine: e})
			room := new(exec.Room)
			_, bind := f.bound(f.outputs[1:])
			lend, lent := f.bound(f.outputs[1:])
			there, on := f.bound(f.outputs[1:])
			plans := []struct {
				name string
				cfg  exec.Config
			}{
				{"computed again", exec.Config{Recompute: f.recompute()}},
				{"bound", exec.Config{Bind: bind, CheckNaN: true}},
				{"lent", exec.Config{Bind: lent, Lend: lend}},
				{"lent, computed again", exec.Config{Bind: lent, Lend: lend, Recompute: f.recompute()}},
				{"lent by a device, computed again", exec.Config{Device: newLender(t, there), Bind: on, Lend: there, Recompute: f.recompute()}},
				{"shared, computed again", exec.Config{Room: room, Recompute: f.recompute()}},
				{"shared", exec.Config{Room: room}},
				{"on a device", exec.Config{Device: &ram{}}},
				{"on a device, computed again and bound", exec.Config{Device: &ram{}, Recompute: f.recompute(), Bind: bind}},
			}
			var machines []*exec.Machine
			for _, p := range plans {
				p.cfg.Engine = e
				m := compileWith(t, f, p.cfg)
				if err := m.CheckLayout(); err != nil {
					t.Fatalf("seed %d, %+v, %s: %v", seed, o, p.name, err)
				}
				machines = append(machines, m)
				if m.Borrowed() > 0 {
					borrowed++
				}
			}
			again += machines[0].Nodes() - want.Nodes()
			if o.Precision == "" {
				full = want.Memory()
			} else if want.Memory() < full {
				halved++
			}
			for range 2 {
				run(t, want)
				for i, m := range machines {
					if plans[i].cfg.Device == nil {
						run(t, m)
					} else if err := m.RunAll(); err != nil {
						t.Fatal(err)
					}
					if diff := difference(t, f.outputs, m, want); diff != "" {
						t.Fatalf("seed %d, %+v, %s: %s", seed, o, plans[i].name, diff)
					}
				}
				f.key[1]++ // other masks
			}
			for _, m := range machines {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
			e.Close()
		}
	}
	if again < 200 || halved < 40 || borrowed < 200 {
		t.Errorf("%d nodes are computed again, %d plans in bfloat16 take less memory and %d have results in memory that is lent: too few to say anything", again, halved, borrowed)
	}
}

// TestInferencePlans: a forward pass alone, which keeps less and lets more results share memory, has the bits that training has.
func TestInferencePlans(t *testing.T) {
	for seed := range uint64(80) {
		f := randomTransformer(t, rand.New(rand.NewPCG(seed, 19)))
		want := f.compile(t, exec.Config{})
		alone := f.compile(t, exec.Config{Outputs: f.outputs[:1], Forward: true})
		for range 2 {
			run(t, want)
			run(t, alone)
			sameOutputs(t, f.outputs[:1], alone, want)
			f.key[0]++
		}
		if alone.Memory() >= want.Memory() {
			t.Errorf("seed %d: %d bytes for the forward pass alone, %d for both", seed, alone.Memory(), want.Memory())
		}
	}
}
