package oncuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

// benchCase is the sizes and the operands of a call; seqs 0: self attention.
type benchCase struct {
	rows, seqs, lq, lk, heads, width   int
	lengths, bits, index, bias, causal bool
}

func (s benchCase) name() string {
	var with []string
	for name, on := range map[string]bool{"lengths": s.lengths, "bits": s.bits, "index": s.index, "bias": s.bias, "causal": s.causal} {
		if on {
			with = append(with, name)
		}
	}
	slices.Sort(with)
	return fmt.Sprintf("%d rows of %d sequences %d x %d of %d heads of %d %s", s.rows, s.seqs, s.lq, s.lk, s.heads, s.width, strings.Join(with, " "))
}

// BenchmarkCUDA times the steps of Attention alone: an image tower of 257 tokens (ViT-B/14), texts of 30, texts that attend to
// images, several to an image, class tokens, larger images. Rates count every key.
func BenchmarkCUDA(b *testing.B) {
	d := cudatest.Open(b)
	if cudatest.Emulated(d) {
		b.Skip("times of the emulator mean nothing")
	}
	for _, s := range []benchCase{
		{rows: 64, lq: 257, lk: 257, heads: 12, width: 64},
		{rows: 128, lq: 197, lk: 197, heads: 12, width: 64},
		{rows: 32, lq: 577, lk: 577, heads: 12, width: 64},
		{rows: 64, lq: 257, lk: 257, heads: 12, width: 64, bits: true},
		{rows: 64, lq: 257, lk: 257, heads: 6, width: 128},
		{rows: 256, lq: 30, lk: 30, heads: 12, width: 64, lengths: true, bits: true},
		{rows: 384, seqs: 128, lq: 30, lk: 257, heads: 12, width: 64, index: true, bits: true},
		{rows: 128, seqs: 128, lq: 1, lk: 257, heads: 12, width: 64},
		{rows: 128, lq: 128, lk: 128, heads: 12, width: 64, causal: true},
		{rows: 64, lq: 128, lk: 128, heads: 12, width: 64, bias: true},
	} {
		for _, half := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/bf16=%t", s.name(), half), func(b *testing.B) { s.bench(b, d, half, "") })
		}
	}
}

// BenchmarkCUDATiles times ways to cut up the work of the kernels in bfloat16, of the shapes that matter most:
//
//	attention.test -test.run '^$' -test.bench CUDATiles -test.benchtime 3x
//
// "chosen" is what a step takes of itself; "attend_dq 1x6/2 tile 64 chunk 32" has, in that kernel alone, blocks of six warps of one
// group, two blocks to a multiprocessor.
func BenchmarkCUDATiles(b *testing.B) {
	d := cudatest.Open(b)
	if cudatest.Emulated(d) {
		b.Skip("times of the emulator mean nothing")
	}
	type variant struct {
		kernel string
		halfTiles
	}
	variants := []variant{
		{}, // chosen
		{"attend", halfTiles{groups: 1, warps: 6, blocks: 2, tile: 64, chunk: 32}},
		{"attend", halfTiles{groups: 1, warps: 6, blocks: 2, tile: 64, chunk: 64}},
		{"attend", halfTiles{groups: 2, warps: 2, blocks: 4, tile: 64, chunk: 64}},
		{"attend", halfTiles{groups: 2, warps: 4, blocks: 2, tile: 64, chunk: 64}},
		{"attend", halfTiles{groups: 2, warps: 3, blocks: 4, tile: 32, chunk: 32}},
		{"attend", halfTiles{groups: 2, warps: 5, blocks: 2, tile: 64, chunk: 32}},
		{"attend_dq", halfTiles{groups: 1, warps: 6, blocks: 2, tile: 64, chunk: 32}},
		{"attend_dq", halfTiles{groups: 2, warps: 2, blocks: 4, tile: 64, chunk: 16}},
		{"attend_dq", halfTiles{groups: 2, warps: 3, blocks: 4, tile: 64, chunk: 16}},
		{"attend_dq", halfTiles{groups: 2, warps: 4, blocks: 2, tile: 64, chunk: 32}},
		{"attend_dq", halfTiles{groups: 2, warps: 3, blocks: 2, tile: 64, chunk: 32}},
		{"attend_dkv", halfTiles{groups: 1, warps: 6, blocks: 2, tile: 64, chunk: 32}},
		{"attend_dkv", halfTiles{groups: 1, warps: 6, blocks: 2, tile: 64, chunk: 16}},
		{"attend_dkv", halfTiles{groups: 2, warps: 2, blocks: 4, tile: 32, chunk: 16}},
		{"attend_dkv", halfTiles{groups: 2, warps: 4, blocks: 2, tile: 64, chunk: 16}},
		{"attend_dkv", halfTiles{groups: 2, warps: 3, blocks: 2, tile: 64, chunk: 16}},
	}
	defer func() { otherTiles = nil }()
	for _, s := range []benchCase{
		{rows: 128, lq: 257, lk: 257, heads: 12, width: 64},
		{rows: 32, lq: 577, lk: 577, heads: 12, width: 64},
		{rows: 384, seqs: 128, lq: 30, lk: 257, heads: 12, width: 64, index: true, bits: true},
		{rows: 256, lq: 30, lk: 30, heads: 12, width: 64, lengths: true, bits: true},
	} {
		for _, v := range variants {
			if v.kernel != "" && (s.lk <= 32 || s.lq <= 32 && v.kernel != "attend_dkv") {
				continue // variants are of several units; blocks of few queries have but one shape
			}
			name, only := "chosen", ""
			if otherTiles = nil; v.kernel != "" {
				name = fmt.Sprintf("%s %dx%d/%d tile %d chunk %d", v.kernel, v.groups, v.warps, v.blocks, v.tile, v.chunk)
				otherTiles = func(kernel string, t *halfTiles) {
					if kernel == v.kernel {
						tile := t.tile
						if *t = v.halfTiles; tile == 32 {
							t.tile = 32
						}
					}
				}
				if only = "backward"; v.kernel == "attend" {
					only = "forward"
				}
			}
			b.Run(s.name()+"/"+name, func(b *testing.B) { s.bench(b, d, true, only) })
		}
	}
}

// bench times the forward or the backward step alone, or both.
func (s benchCase) bench(b *testing.B, d *cuda.Device, half bool, only string) {
	r := rand.New(rand.NewPCG(1, 2))
	var some [4099]float32
	for i := range some {
		some[i] = float32(r.NormFloat64())
	}
	buffer := func(t exec.Type, fill func(i int) float32, shape ...int) exec.Operand {
		spec := exec.Spec{Shape: tensor.Shape(shape), Type: t}
		mem := check.Get(d.Alloc(spec.Words()))(b)
		b.Cleanup(func() { _ = mem.Free() })
		o := exec.Operand{Spec: spec, Buffer: mem.Buffer(0, spec)}
		x := o.Buffer.Host()
		for i := range x.F32 {
			x.F32[i] = fill(i)
		}
		for i := range x.BF16 {
			x.BF16[i] = uint16(math.Float32bits(some[i%len(some)]) >> 16)
		}
		for i := range x.I32 {
			x.I32[i] = int32(fill(i))
		}
		check.OK(b, o.Buffer.Store())
		return o
	}
	kind := exec.Float32
	if half {
		kind = exec.BFloat16
	}
	normal := func(i int) float32 { return some[i%len(some)] }
	a := Attention{Self: s.seqs == 0, Causal: s.causal, LQ: s.lq, LK: s.lk, Heads: s.heads, Keep: .9, Index: -1, Lengths: -1,
		Bits: -1, Bias: -1}
	w, seqs := s.heads*s.width, s.seqs
	var in []exec.Operand
	if a.Self {
		in, seqs = append(in, buffer(kind, normal, s.rows*s.lq, 3*w)), s.rows
	} else {
		in = append(in, buffer(kind, normal, s.rows*s.lq, w), buffer(kind, normal, seqs*s.lk, 2*w))
	}
	optional := func(on bool, at *int, t exec.Type, fill func(i int) float32, shape ...int) {
		if on {
			*at, in = len(in), append(in, buffer(t, fill, shape...))
		}
	}
	optional(s.index, &a.Index, exec.Int32, func(i int) float32 { return float32(i % seqs) }, s.rows)
	optional(s.lengths, &a.Lengths, exec.Int32, func(int) float32 { return float32(1 + r.IntN(s.lk)) }, s.rows)
	optional(s.bits, &a.Bits, exec.Int32, func(int) float32 { return float32(r.Uint32() >> 1) },
		s.rows*s.heads*s.lq*((s.lk+31)/32))
	optional(s.bias, &a.Bias, exec.Float32, normal, s.heads, s.lq, s.lk)
	operands := len(in)
	out, dy := buffer(kind, normal, s.rows*s.lq, w), buffer(kind, normal, s.rows*s.lq, w)
	zero := func(int) float32 { return 0 }
	aux := []exec.Operand{buffer(exec.Float32, zero, s.rows, s.heads, s.lq), buffer(exec.Int32, zero, s.rows),
		buffer(exec.Int32, zero, seqs+1)}
	grads := []exec.Operand{buffer(kind, zero, in[0].Shape...)}
	if !a.Self {
		grads = append(grads, buffer(kind, zero, in[1].Shape...))
	}
	if s.bias {
		grads = append(grads, buffer(exec.Float32, zero, s.heads, s.lq, s.lk))
	}
	inAux := make([][]exec.Operand, operands+2)
	inAux[operands] = aux
	flops := 2 * float64(s.rows) * float64(s.lq) * float64(s.lk) * float64(w)
	for _, x := range []struct {
		name     string
		steps    cuda.Steps
		call     *exec.DeviceCall
		products float64
	}{
		{"forward", a.Forward(), &exec.DeviceCall{In: in, Out: out, Aux: aux, BF16: half}, 2},
		{"backward", a.Backward(), &exec.DeviceCall{In: append(in[:operands:operands], out, dy), InAux: inAux,
			Out: grads[0], Aux: grads[1:], BF16: half}, 5},
	} {
		if only != "" && only != x.name {
			continue
		}
		step := check.Get(x.steps[cuda.Name].Prepare(x.call))(b)
		run := func(times int) {
			for range times {
				check.OK(b, step())
			}
			check.OK(b, d.Sync())
		}
		run(2)
		b.Run(x.name, func(b *testing.B) {
			const times = 20
			for b.Loop() {
				run(times)
			}
			each := b.Elapsed().Seconds() / float64(b.N*times)
			b.ReportMetric(each*1e6, "us/step")
			b.ReportMetric(x.products*flops/each/1e12, "TFLOP/s")
		})
	}
}
