package attention

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

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
	in := []optest.Input{optest.F32s(r, "qkv", c.rows*c.lq, 3*d)}
	wrt := []int{0}
	if !c.self {
		in, wrt = []optest.Input{optest.F32s(r, "q", c.rows*c.lq, d), optest.F32s(r, "kv", c.seqs*c.lk, 2*d)}, []int{0, 1}
	}
	at := map[string]int{}
	add := func(name string, n int, value func(i int) int32) {
		x := make([]int32, n)
		for i := range x {
			x[i] = value(i)
		}
		at[name] = len(in)
		in = append(in, optest.I32s(name, x, n))
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
		add("bits", c.rows*heads*c.lq*nn.MaskWords(c.lk), func(int) int32 { return int32(r.Uint32() | r.Uint32() | r.Uint32()) })
	}
	engine := check.Get(kernel.New(kernel.Options{Precision: precision}))(b)
	defer engine.Close()
	optest.Benchmark(b, engine, optest.Case{Inputs: in, WRT: wrt, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
		get := func(name string) *gorgonia.Node {
			if i, ok := at[name]; ok {
				return ns[i]
			}
			return nil
		}
		if c.self {
			return SelfAttention(SelfArgs{QKV: ns[0], Lengths: get("lengths"), Bits: get("bits"), Len: c.lq, Heads: heads, Keep: keep})
		}
		return CrossAttention(CrossArgs{Q: ns[0], KV: ns[1], Index: get("index"), Lengths: get("lengths"), Bits: get("bits"), QueryLen: c.lq, KeyLen: c.lk, Heads: heads, Keep: keep})
	}})
}
