package ops

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// benchmarkOp runs forward and backward of build's output and reports the rate of
// the matrix products.
func benchmarkOp(b *testing.B, precision string, build func(ns gorgonia.Nodes) *gorgonia.Node, wrt []int, inputs ...input) {
	g, ns := nodes(inputs)
	out := build(ns)
	cost := out
	if len(out.Shape()) > 0 {
		w := f32s(rand.New(rand.NewPCG(7, 7)), "test weights", out.Shape()...)
		inputs = append(inputs, w)
		ns = append(ns, gorgonia.NewTensor(g, tensor.Float32, len(w.shape), gorgonia.WithShape(w.shape...), gorgonia.WithName(w.name)))
		cost = dotForTest(out, ns[len(ns)-1])
	}
	var params gorgonia.Nodes
	for _, i := range wrt {
		params = append(params, ns[i])
	}
	grads, err := gorgonia.Grad(cost, params...)
	if err != nil {
		b.Fatal(err)
	}
	engine, err := kernel.New(kernel.Options{Precision: precision})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	m := machineOn(b, engine, g, ns, inputs, append(gorgonia.Nodes{cost}, grads...)...)
	if err := m.RunAll(); err != nil {
		b.Fatal(err)
	}
	m.ResetProfile()
	for b.Loop() {
		if err := m.RunAll(); err != nil {
			b.Fatal(err)
		}
	}
	report(b, m.Profile())
}

// machineOn is machine with an engine of its own.
func machineOn(b *testing.B, engine *kernel.Engine, g *gorgonia.ExprGraph, ns gorgonia.Nodes, inputs []input, outputs ...*gorgonia.Node) *exec.Machine {
	b.Helper()
	m, err := exec.Compile(g, exec.Config{Engine: engine, Outputs: outputs})
	if err != nil {
		b.Fatal(err)
	}
	for i, in := range inputs {
		if err := m.SetInput(ns[i], in.data); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

// report names the time of every kind of op that matters.
func report(b *testing.B, p exec.Profile) {
	for _, k := range p.Kinds {
		if k.Time*20 < p.Time {
			continue
		}
		name := ""
		for _, r := range k.Kind {
			if r == ' ' {
				r = '-'
			}
			name += string(r)
		}
		b.ReportMetric(k.Time.Seconds()*1e6/float64(p.Runs), "us/"+name)
		if k.FLOPs > 0 {
			b.ReportMetric(float64(k.FLOPs)/k.Time.Seconds()/1e9, "GFLOPs/"+name)
		}
	}
}

// attentionSizes are a problem of BenchmarkAttention: rows of lq queries that attend
// to seqs sequences of lk keys, D = heads*e.
type attentionSizes struct {
	name                     string
	rows, seqs, lq, lk, e    int
	self, index, drop, short bool
}

// BenchmarkAttention runs the sizes of a small ALBEF-class model (an image tower of 65
// tokens, and texts of 30 that attend to images, four to an image), of larger images,
// and of last layers that need one query a sequence. Names say the keys and the head
// width.
func BenchmarkAttention(b *testing.B) {
	for _, c := range []attentionSizes{
		{name: "image", rows: 32, lq: 65, e: 64, self: true},
		{name: "text", rows: 128, lq: 30, e: 64, self: true, drop: true, short: true},
		{name: "cross", rows: 128, seqs: 32, lq: 30, lk: 65, e: 64, index: true, drop: true},
		{name: "self30", rows: 128, lq: 30, e: 64, self: true},
		{name: "self30", rows: 128, lq: 30, e: 32, self: true},
		{name: "self65", rows: 32, lq: 65, e: 32, self: true},
		{name: "self197", rows: 8, lq: 197, e: 64, self: true},
		{name: "self197", rows: 8, lq: 197, e: 32, self: true},
		{name: "self257", rows: 8, lq: 257, e: 64, self: true},
		{name: "self257", rows: 8, lq: 257, e: 32, self: true},
		{name: "dropped257", rows: 8, lq: 257, e: 64, self: true, drop: true},
		{name: "cross257", rows: 32, seqs: 8, lq: 30, lk: 257, e: 64, index: true},
		{name: "one65", rows: 32, seqs: 32, lq: 1, lk: 65, e: 64},
		{name: "one65of32", rows: 300, seqs: 32, lq: 1, lk: 65, e: 64, index: true, drop: true},
		{name: "one30of128", rows: 300, seqs: 128, lq: 1, lk: 30, e: 64, index: true, drop: true, short: true},
	} {
		for _, precision := range []string{"fp32", "bf16"} {
			b.Run(fmt.Sprintf("%s/%d/%s", c.name, c.e, precision), func(b *testing.B) { c.run(b, precision) })
		}
	}
}

func (c attentionSizes) run(b *testing.B, precision string) {
	r := rand.New(rand.NewPCG(9, 1))
	const heads = 6
	d := heads * c.e
	if c.self {
		c.seqs, c.lk = c.rows, c.lq
	}
	in := []input{f32s(r, "qkv", c.rows*c.lq, 3*d)}
	wrt := []int{0}
	if !c.self {
		in, wrt = []input{f32s(r, "q", c.rows*c.lq, d), f32s(r, "kv", c.seqs*c.lk, 2*d)}, []int{0, 1}
	}
	at := map[string]int{}
	add := func(name string, n int, value func(i int) int32) {
		x := make([]int32, n)
		for i := range x {
			x[i] = value(i)
		}
		at[name] = len(in)
		in = append(in, i32s(name, x, n))
	}
	if c.index {
		add("index", c.rows, func(i int) int32 { return int32(i % c.seqs) })
	}
	if c.short {
		add("lengths", c.rows, func(int) int32 { return int32(8 + r.IntN(c.lk-7)) })
	}
	keep := float32(1)
	if c.drop {
		keep = .9
		add("bits", c.rows*heads*c.lq*maskWords(c.lk), func(int) int32 { return int32(r.Uint32() | r.Uint32() | r.Uint32()) })
	}
	benchmarkOp(b, precision, func(ns gorgonia.Nodes) *gorgonia.Node {
		get := func(name string) *gorgonia.Node {
			if i, ok := at[name]; ok {
				return ns[i]
			}
			return nil
		}
		if c.self {
			return SelfAttention(ns[0], get("lengths"), get("bits"), c.lq, heads, keep)
		}
		return CrossAttention(ns[0], ns[1], get("index"), get("lengths"), get("bits"), c.lq, c.lk, heads, keep)
	}, wrt, in...)
}

// BenchmarkCrossEntropy runs a masked language model's loss over a BERT
// vocabulary and a contrastive one over batch and queue, both distilled.
func BenchmarkCrossEntropy(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 2))
	for _, c := range []struct {
		name       string
		rows, cols int
		ids        bool
	}{{"mlm", 212, 30522, false}, {"itc", 32, 4128, false}, {"ids", 32, 4128, true}} {
		b.Run(c.name, func(b *testing.B) {
			l := &lossCase{rows: c.rows, cols: c.cols, alpha: .4}
			l.logits = f32s(r, "", c.rows, c.cols).data.([]float32)
			l.teacher = f32s(r, "", c.rows, c.cols).data.([]float32)
			for i := range c.rows {
				l.labels = append(l.labels, int32(i))
			}
			if c.ids {
				l.rowIDs, l.labels = l.labels, nil
				for range c.cols {
					l.colID = append(l.colID, int32(r.IntN(1000)))
				}
			}
			benchmarkOp(b, "fp32", l.build, []int{0}, l.inputs()...)
		})
	}
}
