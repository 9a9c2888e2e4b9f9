package attention

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// attentionCase is a random attention problem with any of the optional operands.
type attentionCase struct {
	self                  bool
	rows, seqs, lq, lk    int
	heads, e              int
	keep                  float32
	q, kv                 optest.Input
	index, lengths, bits  *optest.Input
	indexAt, lenAt, bitAt int
	bias                  *optest.Input
	biasAt                int
	causal                bool
}

// shift gives a case a bias, and a causal mask.
func (a *attentionCase) shift(r *rand.Rand, bias, causal bool) {
	if bias {
		in := optest.F32s(r, "bias", a.heads, a.lq, a.lk)
		a.bias = &in
	}
	a.causal = causal
}

// shifted returns the bias of a score, -Inf for a key that must not be seen.
func (a *attentionCase) shifted(h, i, j int) float64 {
	switch {
	case a.causal && j > i:
		return math.Inf(-1)
	case a.bias == nil:
		return 0
	}
	return float64(a.bias.Floats()[(h*a.lq+i)*a.lk+j])
}

func newAttentionCase(r *rand.Rand, self, index, lengths, bits bool) *attentionCase {
	a := &attentionCase{
		self: self, rows: 1 + r.IntN(4), lq: 1 + r.IntN(5), lk: 1 + r.IntN(40), heads: 1 + r.IntN(3), e: 1 + r.IntN(5), keep: 1,
	}
	a.seqs = a.rows
	d := a.heads * a.e
	if self {
		a.lk = a.lq
		a.q = optest.F32s(r, "qkv", a.rows*a.lq, 3*d)
	} else {
		if index {
			a.seqs = 1 + r.IntN(4)
		}
		a.q, a.kv = optest.F32s(r, "q", a.rows*a.lq, d), optest.F32s(r, "kv", a.seqs*a.lk, 2*d)
	}
	ints := func(name string, n, lo, hi int) *optest.Input {
		x := make([]int32, n)
		for i := range x {
			x[i] = int32(lo + r.IntN(hi-lo))
		}
		in := optest.I32s(name, x, n)
		return &in
	}
	if index {
		a.index = ints("index", a.rows, 0, a.seqs)
	}
	if lengths {
		a.lengths = ints("lengths", a.rows, 0, a.lk+1)
		a.lengths.Data.([]int32)[0] = int32(a.lk)
	}
	if bits {
		a.keep = 0.7
		x := make([]int32, a.rows*a.heads*a.lq*((a.lk+31)/32))
		for i := range x {
			x[i] = int32(r.Uint32() | r.Uint32())
		}
		in := optest.I32s("bits", x, len(x))
		a.bits = &in
	}
	return a
}

func (a *attentionCase) inputs() []optest.Input {
	in := []optest.Input{a.q}
	if !a.self {
		in = append(in, a.kv)
	}
	for _, o := range []struct {
		x  *optest.Input
		at *int
	}{{a.index, &a.indexAt}, {a.lengths, &a.lenAt}, {a.bits, &a.bitAt}, {a.bias, &a.biasAt}} {
		*o.at = -1
		if o.x != nil {
			*o.at = len(in)
			in = append(in, *o.x)
		}
	}
	return in
}

func (a *attentionCase) build(ns gorgonia.Nodes) *gorgonia.Node {
	get := func(i int) *gorgonia.Node {
		if i < 0 {
			return nil
		}
		return ns[i]
	}
	if a.self {
		return SelfAttention(SelfArgs{QKV: ns[0], Lengths: get(a.lenAt), Bits: get(a.bitAt), Bias: get(a.biasAt), Causal: a.causal, Len: a.lq, Heads: a.heads, Keep: a.keep})
	}
	return CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Index: get(a.indexAt), Lengths: get(a.lenAt), Bits: get(a.bitAt), Bias: get(a.biasAt), QueryLen: a.lq, KeyLen: a.lk, Heads: a.heads, Keep: a.keep})
}

// naive computes the attention by its definition, one number at a time.
func (a *attentionCase) naive() []float32 {
	d := a.heads * a.e
	q := func(r, i, c int) float64 { return float64(a.q.Data.([]float32)[(r*a.lq+i)*d+c]) }
	k := func(n, j, c int) float64 { return float64(a.kv.Data.([]float32)[(n*a.lk+j)*2*d+c]) }
	v := func(n, j, c int) float64 { return k(n, j, c+d) }
	if a.self {
		x := a.q.Data.([]float32)
		q = func(r, i, c int) float64 { return float64(x[(r*a.lq+i)*3*d+c]) }
		k = func(n, j, c int) float64 { return q(n, j, c+d) }
		v = func(n, j, c int) float64 { return q(n, j, c+2*d) }
	}
	out := make([]float32, a.rows*a.lq*d)
	words := (a.lk + 31) / 32
	for r := range a.rows {
		n, nk := r, a.lk
		if a.index != nil {
			n = int(a.index.Data.([]int32)[r])
		}
		if a.lengths != nil {
			nk = int(a.lengths.Data.([]int32)[r])
		}
		for h := range a.heads {
			for i := range a.lq {
				p := make([]float64, nk)
				var sum float64
				for j := range p {
					for c := h * a.e; c < (h+1)*a.e; c++ {
						p[j] += q(r, i, c) * k(n, j, c)
					}
					p[j] = math.Exp(p[j]/math.Sqrt(float64(a.e)) + a.shifted(h, i, j))
					sum += p[j]
				}
				for j := range p {
					w := p[j] / sum
					if a.bits != nil {
						word := uint32(a.bits.Data.([]int32)[((r*a.heads+h)*a.lq+i)*words+j/32])
						w *= float64(word>>(j%32)&1) / float64(a.keep)
					}
					for c := h * a.e; c < (h+1)*a.e; c++ {
						out[(r*a.lq+i)*d+c] += float32(w * v(n, j, c))
					}
				}
			}
		}
	}
	return out
}

// TestAttentionFuzz compares random shapes and all combinations of the optional
// operands with the definition and with finite differences.
func TestAttentionFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 96 {
		self := i&1 != 0
		a := newAttentionCase(r, self, !self && i&2 != 0, i&4 != 0, i&8 != 0)
		a.shift(r, a.index == nil && i&16 != 0, self && i&32 != 0)
		in := a.inputs()
		optest.Near(t, "attention", optest.Eval(t, a.build, in...).F32, a.naive(), 1e-5)
		wrt := []int{0, 1}[:1]
		if !self {
			wrt = []int{0, 1}
		}
		if a.bias != nil {
			wrt = append(wrt, a.biasAt)
		}
		optest.CheckGrad(t, a.build, wrt, 1e-2, 4e-3, in...)
		if t.Failed() {
			t.Fatalf("case %d: %+v", i, *a)
		}
	}
}

// TestAttentionBlocks covers sequences that are worked on in several blocks of
// queries: 300 keys allow 109 queries at a time.
func TestAttentionBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	a := newAttentionCase(r, false, true, true, true)
	a.rows, a.seqs, a.lq, a.lk, a.heads, a.e = 2, 1, 250, 300, 2, 3
	a.q, a.kv = optest.F32s(r, "q", 500, 6), optest.F32s(r, "kv", 300, 12)
	index, lengths := optest.I32s("index", []int32{0, 0}, 2), optest.I32s("lengths", []int32{290, 300}, 2)
	words := make([]int32, 2*2*250*10)
	for i := range words {
		words[i] = int32(r.Uint32() | r.Uint32())
	}
	bits := optest.I32s("bits", words, len(words))
	a.index, a.lengths, a.bits = &index, &lengths, &bits
	in := a.inputs()
	optest.Near(t, "attention", optest.Eval(t, a.build, in...).F32, a.naive(), 1e-5)
	optest.CheckGrad(t, a.build, []int{0, 1}, 3e-2, 2e-2, in...)
}

// TestAttentionShiftedBlocks covers a bias and a causal mask over several blocks.
func TestAttentionShiftedBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	a := newAttentionCase(r, true, false, true, true)
	a.rows, a.seqs, a.lq, a.lk, a.heads, a.e = 2, 2, 260, 260, 2, 3
	a.q = optest.F32s(r, "qkv", 520, 18)
	words := make([]int32, 2*2*260*nn.MaskWords(260))
	for i := range words {
		words[i] = int32(r.Uint32() | r.Uint32())
	}
	*a.lengths, *a.bits = optest.I32s("lengths", []int32{260, 130}, 2), optest.I32s("bits", words, len(words))
	a.shift(r, true, true)
	in := a.inputs()
	optest.Near(t, "attention", optest.Eval(t, a.build, in...).F32, a.naive(), 1e-5)
	optest.CheckGrad(t, a.build, []int{0, a.biasAt}, 3e-2, 2e-2, in...)
}

// TestAttentionCausal: what comes after a token does not matter to it at all.
func TestAttentionCausal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 10))
	qkv := optest.F32s(r, "qkv", 40, 12)
	build := func(ns gorgonia.Nodes) *gorgonia.Node {
		return SelfAttention(SelfArgs{QKV: ns[0], Causal: true, Len: 20, Heads: 2, Keep: 1})
	}
	before := optest.Eval(t, build, qkv).F32
	for i := 13 * 12; i < 20*12; i++ {
		qkv.Floats()[i] = 1e3
	}
	after := optest.Eval(t, build, qkv).F32
	optest.Near(t, "tokens before", after[:13*4], before[:13*4], 0)
	optest.Near(t, "the other sequence", after[20*4:], before[20*4:], 0)
	if after[13*4] == before[13*4] {
		t.Error("a token does not see itself")
	}
}

// TestRelativeBias compares values and gradients with the definition.
func TestRelativeBias(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 11))
	for _, s := range [][4]int{{32, 3, 150, 128}, {8, 2, 9, 5}, {4, 1, 3, 2}} {
		n, heads, l, farthest := s[0], s[1], s[2], s[3]
		table := optest.F32s(r, "table", n, heads)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return RelativeBias(ns[0], l, l+2, farthest) }
		want := make([]float32, heads*l*(l+2))
		for h := range heads {
			for i := range l {
				for j := range l + 2 {
					d := i - j // of a distance d: half the buckets for j > i
					b := 0
					if d < 0 {
						b, d = n/2, -d
					}
					if d < n/4 {
						b += d
					} else {
						steps := math.Log(float64(d)*4/float64(n)) / math.Log(float64(farthest)*4/float64(n)) * float64(n/4)
						b += min(n/2-1, n/4+int(steps+1e-9))
					}
					want[(h*l+i)*(l+2)+j] = table.Floats()[b*heads+h]
				}
			}
		}
		optest.Near(t, "bias", optest.Eval(t, build, table).F32, want, 0)
		optest.CheckGrad(t, build, []int{0}, 1e-1, 1e-3, table)
	}
}

// TestAttentionOneQuery covers rows of one query, which are worked on together where they
// share keys and see as many of them.
func TestAttentionOneQuery(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	for i := range 12 {
		a := newAttentionCase(r, false, true, true, i&1 != 0)
		a.rows, a.lq, a.lk, a.e = 40, 1, 3+r.IntN(30), 1+r.IntN(9)
		d := a.heads * a.e
		a.q, a.kv = optest.F32s(r, "q", a.rows, d), optest.F32s(r, "kv", a.seqs*a.lk, 2*d)
		some := []int32{0, int32(a.lk), int32(1 + r.IntN(a.lk))}
		index, lengths := optest.RandomInts(r, a.rows, a.seqs), make([]int32, a.rows)
		for j := range lengths {
			lengths[j] = some[(j+i)/9%3]
		}
		*a.index, *a.lengths = optest.I32s("index", index, a.rows), optest.I32s("lengths", lengths, a.rows)
		if a.bits != nil {
			words := optest.RandomInts(r, a.rows*a.heads*nn.MaskWords(a.lk), 1<<31-1)
			*a.bits = optest.I32s("bits", words, len(words))
		}
		in := a.inputs()
		optest.Near(t, "attention", optest.Eval(t, a.build, in...).F32, a.naive(), 1e-5)
		optest.CheckGrad(t, a.build, []int{0, 1}, 1e-2, 1e-2, in...)
		if t.Failed() {
			t.Fatalf("case %d: %+v", i, *a)
		}
	}
}

// TestAttentionMask checks that keys beyond the length do not matter at all, and
// that a row without keys gives zeros.
func TestAttentionMask(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 6))
	qkv, lengths := optest.F32s(r, "qkv", 6, 12), optest.I32s("lengths", []int32{2, 0}, 2)
	build := func(ns gorgonia.Nodes) *gorgonia.Node {
		return SelfAttention(SelfArgs{QKV: ns[0], Lengths: ns[1], Len: 3, Heads: 2, Keep: 1})
	}
	before := optest.Eval(t, build, qkv, lengths)
	x := qkv.Data.([]float32)
	for c := 4; c < 12; c++ {
		x[2*12+c] = float32(math.NaN()) // key and value 2 of row 0
	}
	after := optest.Eval(t, build, qkv, lengths)
	optest.Near(t, "output", after.F32, before.F32, 0)
	for i, v := range after.F32[12:] {
		if v != 0 {
			t.Errorf("row without keys: output %d is %v, want 0", i, v)
		}
	}
	grads, _ := optest.Gradients(t, build, []int{0}, qkv, lengths)
	for i, v := range grads[0] {
		masked := i >= 36 || i >= 24 && i%12 >= 4
		if v != v || masked && v != 0 {
			t.Errorf("gradient %d is %v", i, v)
		}
	}
}

func TestAttentionErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	qkv, q, kv := optest.F32s(r, "qkv", 6, 12), optest.F32s(r, "q", 6, 4), optest.F32s(r, "kv", 10, 8)
	ints := optest.I32s("ints", make([]int32, 3), 3)
	two, bias, table := optest.I32s("two", make([]int32, 2), 2), optest.F32s(r, "bias", 2, 3, 5), optest.F32s(r, "table", 8, 2)
	for _, c := range []struct {
		name  string
		want  string
		build func(ns gorgonia.Nodes)
	}{
		{"rows", "multiple of 4 rows", func(ns gorgonia.Nodes) { SelfAttention(SelfArgs{QKV: ns[0], Len: 4, Heads: 2, Keep: 1}) }},
		{"heads", "multiple of 3 heads", func(ns gorgonia.Nodes) { SelfAttention(SelfArgs{QKV: ns[0], Len: 3, Heads: 3, Keep: 1}) }},
		{"keep", "keep must be", func(ns gorgonia.Nodes) { SelfAttention(SelfArgs{QKV: ns[0], Len: 3, Heads: 2, Keep: 0}) }},
		{"lengths", "lengths must have shape (2)", func(ns gorgonia.Nodes) {
			SelfAttention(SelfArgs{QKV: ns[0], Lengths: ns[3], Len: 3, Heads: 2, Keep: 1})
		}},
		{"bits", "12 words", func(ns gorgonia.Nodes) { SelfAttention(SelfArgs{QKV: ns[0], Bits: ns[3], Len: 3, Heads: 2, Keep: 1}) }},
		{"no tokens", "at least one token", func(ns gorgonia.Nodes) { SelfAttention(SelfArgs{QKV: ns[0], Len: 0, Heads: 2, Keep: 1}) }},
		{"columns", "twice the columns", func(ns gorgonia.Nodes) {
			CrossAttention(CrossArgs{Q: ns[0], KV: ns[2], QueryLen: 3, KeyLen: 5, Heads: 2, Keep: 1})
		}},
		{"key rows", "multiple of 3 rows", func(ns gorgonia.Nodes) {
			CrossAttention(CrossArgs{Q: ns[1], KV: ns[2], QueryLen: 3, KeyLen: 3, Heads: 2, Keep: 1})
		}},
		{"sequences", "as many key sequences", func(ns gorgonia.Nodes) {
			CrossAttention(CrossArgs{Q: ns[1], KV: ns[2], QueryLen: 2, KeyLen: 5, Heads: 2, Keep: 1})
		}},
		{"bias", "bias must have shape (2, 3, 3)", func(ns gorgonia.Nodes) {
			SelfAttention(SelfArgs{QKV: ns[0], Bias: ns[1], Len: 3, Heads: 2, Keep: 1})
		}},
		{"bias with an index", "leave out index", func(ns gorgonia.Nodes) {
			CrossAttention(CrossArgs{Q: ns[1], KV: ns[2], Index: ns[4], Bias: ns[5], QueryLen: 3, KeyLen: 5, Heads: 2, Keep: 1})
		}},
		{"buckets", "multiple of 4 buckets", func(ns gorgonia.Nodes) { RelativeBias(ns[1], 3, 3, 9) }},
		{"distance", "must be above 2", func(ns gorgonia.Nodes) { RelativeBias(ns[6], 3, 3, 2) }},
		{"no queries", "at least one query and key", func(ns gorgonia.Nodes) { RelativeBias(ns[6], 0, 3, 9) }},
		{"index", "index must have shape (2)", func(ns gorgonia.Nodes) {
			CrossAttention(CrossArgs{Q: ns[1], KV: ns[2], Index: ns[3], QueryLen: 3, KeyLen: 5, Heads: 2, Keep: 1})
		}},
	} {
		_, ns := optest.Nodes([]optest.Input{qkv, q, kv, ints, two, bias, table})
		optest.BuildError(t, c.name, c.want, func() { c.build(ns) })
	}
	for _, c := range []struct {
		want           string
		index, lengths []int32
	}{
		{"index[1] is 2", []int32{0, 2}, []int32{5, 5}},
		{"index[0] is -1", []int32{-1, 0}, []int32{5, 5}},
		{"lengths[1] is 6", []int32{0, 1}, []int32{5, 6}},
		{"lengths[0] is -1", []int32{0, 1}, []int32{-1, 5}},
	} {
		in := []optest.Input{q, kv, optest.I32s("index", c.index, 2), optest.I32s("lengths", c.lengths, 2)}
		g, ns := optest.Nodes(in)
		m := optest.Machine(t, g, ns, in, CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Index: ns[2], Lengths: ns[3], QueryLen: 3, KeyLen: 5, Heads: 2, Keep: 1}))
		check.Error(t, m.RunAll(), c.want)
	}
}
