package ops

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// benchmarkOp runs forward and backward of build's output and reports the rate of
// the matrix products.
func benchmarkOp(b *testing.B, build func(ns gorgonia.Nodes) *gorgonia.Node, wrt []int, inputs ...input) {
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
	m := machine(b, g, ns, inputs, append(gorgonia.Nodes{cost}, grads...)...)
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

// BenchmarkAttention runs the sizes of a small ALBEF-class model: an image tower
// of 65 tokens, and texts of 30 that attend to images, three to an image.
func BenchmarkAttention(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 1))
	const d, heads = 384, 6
	b.Run("image", func(b *testing.B) {
		benchmarkOp(b, func(ns gorgonia.Nodes) *gorgonia.Node { return SelfAttention(ns[0], nil, nil, 65, heads, 1) },
			[]int{0}, f32s(r, "qkv", 32*65, 3*d))
	})
	bits := func(n int) input {
		x := make([]int32, n)
		for i := range x {
			x[i] = int32(r.Uint32() | r.Uint32() | r.Uint32())
		}
		return i32s("bits", x, n)
	}
	lengths := make([]int32, 128)
	index := make([]int32, 128)
	for i := range lengths {
		lengths[i], index[i] = int32(8+r.IntN(23)), int32(i%32)
	}
	b.Run("text", func(b *testing.B) {
		benchmarkOp(b, func(ns gorgonia.Nodes) *gorgonia.Node { return SelfAttention(ns[0], ns[1], ns[2], 30, heads, .9) },
			[]int{0}, f32s(r, "qkv", 128*30, 3*d), i32s("lengths", lengths, 128), bits(128*heads*30))
	})
	b.Run("cross", func(b *testing.B) {
		benchmarkOp(b, func(ns gorgonia.Nodes) *gorgonia.Node {
			return CrossAttention(ns[0], ns[1], ns[2], nil, ns[3], 30, 65, heads, .9)
		}, []int{0, 1}, f32s(r, "q", 128*30, d), f32s(r, "kv", 32*65, 2*d), i32s("index", index, 128), bits(128*heads*30*3))
	})
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
			benchmarkOp(b, l.build, []int{0}, l.inputs()...)
		})
	}
}
