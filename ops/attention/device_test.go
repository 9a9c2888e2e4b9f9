package attention

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// deviceCase is attention of one shape with any of the optional operands.
type deviceCase struct {
	rows, seqs, lq, lk, heads, width   int // seqs 0: self attention
	lengths, bits, index, bias, causal bool
}

// name says what a case has.
func (s deviceCase) name() string {
	name := fmt.Sprintf("%d rows %d x %d of %d heads of %d", s.rows, s.lq, s.lk, s.heads, s.width)
	if s.seqs > 0 {
		name = fmt.Sprintf("cross %d sequences ", s.seqs) + name
	}
	for _, o := range []struct {
		on   bool
		name string
	}{{s.lengths, "lengths"}, {s.bits, "bits"}, {s.index, "index"}, {s.bias, "bias"}, {s.causal, "causal"}} {
		if o.on {
			name += " " + o.name
		}
	}
	return name
}

// of makes the case. A case without sequences has them of its own.
func (s deviceCase) of() optest.Case {
	r := rand.New(rand.NewPCG(12, uint64(s.rows*s.lq+s.lk)))
	a := &attentionCase{self: s.seqs == 0, rows: s.rows, seqs: s.seqs, lq: s.lq, lk: s.lk, heads: s.heads, e: s.width, keep: .9} // which says nothing without bits
	d := s.heads * s.width
	if a.self {
		a.q = optest.F32s(r, "qkv", s.rows*s.lq, 3*d)
	} else {
		a.q, a.kv = optest.F32s(r, "q", s.rows*s.lq, d), optest.F32s(r, "kv", s.seqs*s.lk, 2*d)
	}
	ints := func(name string, x []int32) *optest.Input {
		in := optest.I32s(name, x, len(x))
		return &in
	}
	if s.lengths {
		x := optest.RandomInts(r, s.rows, s.lk+1)
		x[0], x[s.rows-1] = int32(s.lk), int32(min(1, s.rows-1)) // all keys, one and, where there are more rows, none
		if s.rows > 2 {
			x[1] = 0
		}
		a.lengths = ints("lengths", x)
	}
	if s.bits {
		a.keep = .7
		x := make([]int32, s.rows*s.heads*s.lq*nn.MaskWords(s.lk))
		for i := range x {
			x[i] = int32(r.Uint32() | r.Uint32())
		}
		a.bits = ints("bits", x)
	}
	if s.index {
		a.index = ints("index", optest.RandomInts(r, s.rows, s.seqs))
	}
	a.shift(r, s.bias, s.causal)
	c := optest.Case{Name: s.name(), Inputs: a.inputs(), WRT: []int{0}, Build: a.build}
	if !a.self {
		c.WRT = append(c.WRT, 1)
	}
	if s.bias {
		c.WRT = append(c.WRT, a.biasAt)
	}
	return c
}

// halfChain is attention between linear layers, so that in bfloat16 what it reads and writes is kept so.
func halfChain(name string, rows, l, heads, width int, cross bool) optest.Case {
	r := rand.New(rand.NewPCG(14, uint64(l)))
	d := heads * width
	scaled := func(name string, shape ...int) optest.Input {
		in := optest.F32s(r, name, shape...)
		for i := range in.Floats() {
			in.Floats()[i] *= .2
		}
		return in
	}
	in := []optest.Input{
		optest.F32s(r, "x", rows*l, 24), scaled("w", 3*d, 24), scaled("out", 16, d),
		optest.I32s("lengths", []int32{int32(l), 1, 0, int32(l - 1)}[:rows], rows), scaled("wq", d, 24), scaled("wkv", 2*d, 24),
	}
	return optest.Case{Name: name, Inputs: in, WRT: []int{0, 2}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
		if cross {
			q, kv := nn.Linear(ns[0], ns[4], nil), nn.Linear(ns[0], ns[5], nil)
			return nn.Linear(CrossAttention(CrossArgs{Q: q, KV: kv, Lengths: ns[3], QueryLen: l, KeyLen: l, Heads: heads,
				Keep: 1}), ns[2], nil)
		}
		return nn.Linear(SelfAttention(SelfArgs{QKV: nn.Linear(ns[0], ns[1], nil), Lengths: ns[3], Len: l, Heads: heads,
			Keep: 1}), ns[2], nil)
	}}
}

// TestCUDA covers the blocks of the kernels: several of queries and of keys, ends of them of one token, rows that share keys,
// widths that are no multiple of what the kernels read at a time.
func TestCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	cases := append(attentionCases(),
		optest.Case{Name: "relative bias of queries and more keys", Inputs: []optest.Input{optest.F32s(r, "table", 8, 3)},
			WRT:   []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return RelativeBias(ns[0], 70, 81, 20) }},
		optest.Case{
			Name: "affinity of odd widths",
			Inputs: []optest.Input{optest.F32s(r, "q", 3*37, 45), optest.F32s(r, "k", 3*37, 45),
				optest.F32s(r, "v", 3*37, 300), optest.I32s("lengths", []int32{37, 0, 6}, 3)},
			WRT: []int{0, 1, 2}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return Affinity(ns[0], ns[1], ns[2], ns[3], 37)
			},
		},
		halfChain("between linear layers", 4, 33, 2, 16, false),
		halfChain("crosswise between linear layers", 4, 20, 2, 16, true),
		halfChain("odd widths between linear layers", 3, 17, 2, 5, true),
	)
	for _, s := range []deviceCase{
		{rows: 1, lq: 65, lk: 65, heads: 2, width: 64},
		{rows: 3, lq: 70, lk: 70, heads: 1, width: 64, lengths: true, bits: true},
		{rows: 2, lq: 145, lk: 145, heads: 1, width: 32, bits: true},
		{rows: 2, lq: 140, lk: 140, heads: 1, width: 16, causal: true, lengths: true},
		{rows: 3, lq: 70, lk: 70, heads: 2, width: 16, bias: true, causal: true, lengths: true, bits: true},
		{rows: 2, lq: 30, lk: 30, heads: 2, width: 80, bias: true},
		{rows: 2, lq: 9, lk: 9, heads: 2, width: 50, bits: true},
		{rows: 2, lq: 20, lk: 20, heads: 1, width: 128, lengths: true, causal: true},
		{rows: 5, seqs: 2, lq: 30, lk: 129, heads: 1, width: 64, index: true, lengths: true, bits: true},
		{rows: 7, seqs: 4, lq: 1, lk: 130, heads: 1, width: 48, index: true, bits: true},
		{rows: 6, seqs: 6, lq: 1, lk: 20, heads: 2, width: 64, lengths: true},
		{rows: 2, seqs: 2, lq: 130, lk: 7, heads: 1, width: 96, lengths: true},
	} {
		cases = append(cases, s.of())
	}
	if d := cudatest.Open(t); !cudatest.Emulated(d) {
		for _, s := range []deviceCase{
			{rows: 16, lq: 257, lk: 257, heads: 12, width: 64},
			{rows: 4, lq: 577, lk: 577, heads: 12, width: 64, bits: true, lengths: true},
			{rows: 64, lq: 30, lk: 30, heads: 12, width: 64, lengths: true, bits: true},
			{rows: 48, seqs: 16, lq: 30, lk: 257, heads: 12, width: 64, lengths: true, index: true, bits: true},
			{rows: 16, seqs: 16, lq: 1, lk: 257, heads: 12, width: 64},
			{rows: 8, lq: 257, lk: 257, heads: 12, width: 64, bias: true},
			{rows: 8, lq: 257, lk: 257, heads: 8, width: 96, causal: true},
		} {
			c := s.of()
			c.Name = "large " + c.Name
			cases = append(cases, c)
		}
	}
	optest.CheckCUDA(t, cases)
}

// TestCUDABadIntegers: what the host reports as errors gives NaN on the device, in that row alone.
func TestCUDABadIntegers(t *testing.T) {
	d := cudatest.Open(t)
	for _, precision := range []string{"fp32", "bf16"} {
		e := check.Get(kernel.New(kernel.Options{Threads: 1, Precision: precision}))(t)
		defer e.Close()
		for name, c := range map[string]struct{ index, lengths []int32 }{
			"index too large":  {[]int32{0, 2, 1}, []int32{5, 5, 5}},
			"index below 0":    {[]int32{0, -1, 1}, []int32{5, 5, 5}},
			"length too large": {[]int32{0, 1, 1}, []int32{5, 6, 5}},
			"length below 0":   {[]int32{0, 1, 1}, []int32{5, -1, 5}},
		} {
			r := rand.New(rand.NewPCG(16, 1))
			in := []optest.Input{optest.F32s(r, "q", 9, 4), optest.F32s(r, "kv", 10, 8), optest.I32s("index", c.index, 3),
				optest.I32s("lengths", c.lengths, 3), optest.F32s(r, "dy", 9, 4)}
			g, ns := optest.Nodes(in)
			y := CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Index: ns[2], Lengths: ns[3], QueryLen: 3, KeyLen: 5, Heads: 2,
				Keep: 1})
			grads := check.Get(gorgonia.Grad(optest.Dot(y, ns[4]), ns[0]))(t)
			m := check.Get(exec.Compile(g, exec.Config{Engine: e, Device: d, Outputs: gorgonia.Nodes{y, grads[0]}}))(t)
			defer m.Close()
			for i := range in {
				check.OK(t, m.SetInput(ns[i], in[i].Data))
			}
			check.OK(t, m.RunAll())
			for _, n := range []*gorgonia.Node{y, grads[0]} {
				a := check.Get(m.Value(n))(t)
				for i, v := range a.F32 {
					if bad := i/12 == 1; (v != v) != bad {
						t.Errorf("%s, %s: element %d of %v is %v", precision, name, i, n, v)
					}
				}
			}
		}
	}
}
