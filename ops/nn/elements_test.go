package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestLayerNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, s := range append([][]int{{1, 1}, {200, 32}}, optest.RandomShapes(r, 12, 90, 40)...) {
		rows, cols := s[0], s[1]+1 // a row of one value has no gradient
		x, gamma, beta := optest.F32s(r, "x", rows, cols), optest.F32s(r, "gamma", cols), optest.F32s(r, "beta", cols)
		const eps = 1e-3
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], eps) }
		want := make([]float32, rows*cols)
		for i := range rows {
			row := x.Floats()[i*cols : (i+1)*cols]
			var mean, variance float64
			for _, v := range row {
				mean += float64(v) / float64(cols)
			}
			for _, v := range row {
				variance += (float64(v) - mean) * (float64(v) - mean) / float64(cols)
			}
			for j, v := range row {
				want[i*cols+j] = float32((float64(v)-mean)/math.Sqrt(variance+eps))*gamma.Floats()[j] + beta.Floats()[j]
			}
		}
		optest.Near(t, "layer norm", optest.Eval(t, build, x, gamma, beta).F32, want, 1e-5)
		optest.CheckGrad(t, build, []int{0, 1, 2}, 1e-3, 1e-2, x, gamma, beta)
	}
}

// elementOps are the activations that no product makes.
func elementOps() []optest.Elements {
	type nodes = gorgonia.Nodes
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	quick := func(ns nodes) *gorgonia.Node { return Activated(ns[0], "quick_gelu") }
	return []optest.Elements{
		{Name: "gelu", Operands: 1, From: -4, To: 4, Tol: 1e-5, Build: func(ns nodes) *gorgonia.Node { return GELU(ns[0]) },
			Of: func(x []float64) float64 { return x[0] * .5 * math.Erfc(-x[0]/math.Sqrt2) }},
		{Name: "quick_gelu alone", Operands: 1, Tol: 1e-5, Build: quick,
			Of: func(x []float64) float64 { return x[0] * sigmoid(1.702*x[0]) }},
		{Name: "relu", Operands: 1, Bend: 1e-9, Build: func(ns nodes) *gorgonia.Node { return ReLU(ns[0]) },
			Of: func(x []float64) float64 { return max(x[0], 0) }},
		{Name: "silu", Operands: 1, Build: func(ns nodes) *gorgonia.Node { return SiLU(ns[0]) },
			Of: func(x []float64) float64 { return x[0] * sigmoid(x[0]) }},
		{Name: "tanh", Operands: 1, Build: func(ns nodes) *gorgonia.Node { return Tanh(ns[0]) },
			Of: func(x []float64) float64 { return math.Tanh(x[0]) }},
	}
}

func TestElements(t *testing.T) { optest.CheckElements(t, elementOps()) }

func TestDropout(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for _, s := range append([][]int{{1, 1}, {4, 31}, {3, 32}, {5, 33}, {7, 96}, {40, 1000}}, optest.RandomShapes(r, 10, 9, 130)...) {
		rows, cols := s[0], s[1]
		const keep = 0.75
		x := optest.F32s(r, "x", rows, cols)
		key := optest.I32s("key", []int32{12, -7}, 2)
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			return Dropout(ns[0], DropoutBits(ns[1], 3, rows, cols, keep), keep)
		}
		bits := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[1], 3, rows, cols, keep) }, x, key).I32
		want := make([]float32, rows*cols)
		for i := range rows {
			for j := range cols {
				if bits[i*((cols+31)/32)+j/32]>>(j%32)&1 == 1 {
					want[i*cols+j] = x.Floats()[i*cols+j] / keep
				}
			}
		}
		optest.Near(t, "dropout", optest.Eval(t, build, x, key).F32, want, 1e-6)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x, key)
	}
}

// TestDropoutBits looks at the share of ones (binomial: 5 standard deviations), at
// the independence of keys, sites and neighbours, and that chunks do not matter.
func TestDropoutBits(t *testing.T) {
	const rows, cols = 40, 1024
	words := func(key []int32, site uint64, keep float32) []int32 {
		return optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], site, rows, cols, keep) }, optest.I32s("key", key, 2)).I32
	}
	at := func(w []int32, i int) int { return int(w[i/32] >> (i % 32) & 1) }
	const n = rows * cols
	for _, keep := range []float32{0.1, 0.5, 0.9, 1} {
		w := words([]int32{1, 2}, 0, keep)
		ones, pairs := 0, 0
		for i := range n {
			ones += at(w, i)
			if i > 0 {
				pairs += at(w, i) & at(w, i-1)
			}
		}
		p := float64(keep)
		if d := math.Abs(float64(ones)/n - p); d > 5*math.Sqrt(p*(1-p)/n)+1e-5 {
			t.Errorf("keep %g: share of ones is off by %g", keep, d)
		}
		if d := math.Abs(float64(pairs)/n - p*p); d > 8*math.Sqrt(p*p*(1-p*p)/n)+1e-4 {
			t.Errorf("keep %g: share of neighbouring ones is off by %g", keep, d)
		}
	}
	base := words([]int32{1, 2}, 0, 0.5)
	for name, other := range map[string][]int32{
		"first key word": words([]int32{2, 2}, 0, 0.5), "second key word": words([]int32{1, 3}, 0, 0.5), "site": words([]int32{1, 2}, 1, 0.5),
	} {
		same := 0
		for i := range n {
			same += 1 - at(base, i) ^ at(other, i)
		}
		if d := math.Abs(float64(same)/n - 0.5); d > 5*0.5/math.Sqrt(n) {
			t.Errorf("masks that differ in the %s agree in %d of %d bits", name, same, n)
		}
	}
	// A prefix of a longer mask: words do not depend on how many there are.
	short := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 0, 1, 96, 0.5) }, optest.I32s("key", []int32{1, 2}, 2)).I32
	if !slices.Equal(short, base[:3]) {
		t.Errorf("words depend on the length of the mask: %x, %x", short, base[:3])
	}
	// A third value of the key is the first row.
	rest := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 0, rows-7, cols, 0.5) }, optest.I32s("key", []int32{1, 2, 7}, 3)).I32
	if !slices.Equal(rest, base[7*MaskWords(cols):]) {
		t.Error("rows of a part have other masks than in the whole")
	}
	// The stream of a key and a site is fixed: a mask is part of what a resumed run
	// must repeat. The kernel's own tests pin the words.
	want := make([]int32, rows*cols/32)
	vector.DropoutBits(want, 0xdaa66d2e7ddf7440, 0, 0.5) // 2<<32 + 1 + 3*0x9e3779b97f4a7c15
	if !slices.Equal(words([]int32{1, 2}, 3, 0.5), want) {
		t.Error("site 3 does not use the stream key + 3*2^64/phi")
	}
}

// TestDropoutBitsFuzz compares masks of random sizes with their stream, whose
// words 0 to 199 are those of one row.
func TestDropoutBitsFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 17))
	for range 20 {
		n, cols, site, keep := 1+r.IntN(60), 1+r.IntN(100), r.Uint64N(50), 0.1+0.9*r.Float32()
		key := optest.I32s("key", []int32{int32(r.Uint32()), int32(r.Uint32())}, 2)
		words := func(n, cols int) []int32 {
			return optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], site, n, cols, keep) }, key).I32
		}
		got := words(n, cols)
		if want := n * ((cols + 31) / 32); len(got) != want {
			t.Fatalf("%d rows of %d bits: %d words, want %d", n, cols, len(got), want)
		}
		if want := words(1, 200*32)[:min(200, len(got))]; !slices.Equal(got[:len(want)], want) {
			t.Errorf("%d rows of %d bits: not the words of the stream", n, cols)
		}
	}
}

func TestEmbedAndGather(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for i := range 24 {
		block := 1 + i%3
		n, cols, rows := 1+r.IntN(9), 1+r.IntN(40), 1+r.IntN(12)
		if i >= 21 {
			n, cols, rows = 50, 384, 90 // enough for several threads
		}
		x, index := optest.F32s(r, "x", n*block, cols), optest.I32s("index", optest.RandomInts(r, rows, n), rows)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return GatherRows(ns[0], ns[1], block) }
		var want []float32
		for _, k := range index.Data.([]int32) {
			want = append(want, x.Floats()[int(k)*block*cols:(int(k)+1)*block*cols]...)
		}
		optest.Near(t, "gather", optest.Eval(t, build, x, index).F32, want, 0)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x, index)
		if block == 1 {
			embed := func(ns gorgonia.Nodes) *gorgonia.Node { return Embed(ns[0], ns[1]) }
			optest.Near(t, "embed", optest.Eval(t, embed, x, index).F32, want, 0)
			optest.CheckGrad(t, embed, []int{0}, 1e-2, 1e-3, x, index)
			pad := n / 2
			padded := func(ns gorgonia.Nodes) *gorgonia.Node { return EmbedPadded(ns[0], ns[1], pad) }
			optest.Near(t, "padded", optest.Eval(t, padded, x, index).F32, want, 0)
			all, _ := optest.Gradients(t, embed, []int{0}, x, index)
			clear(all[0][pad*cols:][:cols])
			but, _ := optest.Gradients(t, padded, []int{0}, x, index)
			optest.Near(t, "gradient but that of the padding", but[0], all[0], 0)
		}
	}
}

func TestIndexErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	x := optest.F32s(r, "x", 6, 2)
	embed := func(ns gorgonia.Nodes) *gorgonia.Node { return Embed(ns[0], ns[1]) }
	gather := func(ns gorgonia.Nodes) *gorgonia.Node { return GatherRows(ns[0], ns[1], 2) }
	optest.RunError(t, "embed: index 6 at position 1: want [0, 6)", embed, x, optest.I32s("i", []int32{0, 6}, 2))
	optest.RunError(t, "embed: index -1 at position 0: want [0, 6)", embed, x, optest.I32s("i", []int32{-1, 6}, 2))
	optest.RunError(t, "gather rows: index 3 at position 2: want [0, 3)", gather, x, optest.I32s("i", []int32{0, 2, 3}, 3))
}

func TestPositions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for _, s := range append([][]int{{1, 1, 0, 1}, {2, 1, 1, 7}, {5, 3, 0, 2}, {9, 20, 11, 130}}, optest.RandomShapes(r, 10, 6, 9, 5, 40)...) {
		b, l, n, cols := s[0], s[1], s[1]+s[2], s[3]
		x, table := optest.F32s(r, "x", b*l, cols), optest.F32s(r, "table", n, cols)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], l) }
		want := make([]float32, b*l*cols)
		for i := range want {
			want[i] = x.Floats()[i] + table.Floats()[i%(l*cols)]
		}
		optest.Near(t, "add positions", optest.Eval(t, build, x, table).F32, want, 0)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, table)
	}
}

func TestL2Normalize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, s := range append([][]int{{1, 2}, {70, 300}}, optest.RandomShapes(r, 8, 20, 40)...) {
		x := optest.F32s(r, "x", s[0], s[1])
		build := func(eps float32) func(ns gorgonia.Nodes) *gorgonia.Node {
			return func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], eps) }
		}
		for _, eps := range []float32{1e-12, 100} { // rows longer and shorter than eps
			want := make([]float32, s[0]*s[1])
			for i := range s[0] {
				row := x.Floats()[i*s[1] : (i+1)*s[1]]
				var sq float64
				for _, v := range row {
					sq += float64(v) * float64(v)
				}
				for j, v := range row {
					want[i*s[1]+j] = v / float32(max(math.Sqrt(sq), float64(eps)))
				}
			}
			optest.Near(t, "l2 normalize", optest.Eval(t, build(eps), x).F32, want, 1e-6)
			optest.CheckGrad(t, build(eps), []int{0}, 1e-2, 1e-2, x)
		}
	}
	zero := optest.In("x", []int{1, 3}, make([]float32, 3))
	optest.Near(t, "zero row", optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], 1e-12) }, zero).F32, make([]float32, 3), 0)
}

func TestPatchify(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 10))
	for _, s := range append([][]int{{1, 1, 2, 2, 1}, {2, 3, 4, 4, 16}}, optest.RandomShapes(r, 10, 3, 4, 4, 4, 5)...) {
		b, ch, h, w, p := s[0], s[1], s[2]*s[4], s[3]*s[4], s[4]
		x := optest.F32s(r, "x", b, ch, h, w)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Patchify(ns[0], p) }
		var want []float32
		for i := range b {
			for y := 0; y < h; y += p {
				for z := 0; z < w; z += p {
					for c := range ch {
						for dy := range p {
							for dz := range p {
								want = append(want, x.Floats()[((i*ch+c)*h+y+dy)*w+z+dz])
							}
						}
					}
				}
			}
		}
		optest.Near(t, "patchify", optest.Eval(t, build, x).F32, want, 0)
		optest.CheckGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}

func TestPrependToken(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	for _, s := range append([][]int{{1, 1, 0, 1}, {3, 2, 0, 4}, {20, 10, 2, 100}}, optest.RandomShapes(r, 10, 5, 6, 3, 20)...) {
		b, p, k, cols := s[0], s[1], s[2], s[3]
		x, token := optest.F32s(r, "x", b*p, cols), optest.F32s(r, "token", cols)
		if k > 0 {
			token = optest.F32s(r, "token", k, cols)
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return PrependToken(ns[0], ns[1], p) }
		var want []float32
		for i := range b {
			want = append(want, token.Floats()...)
			want = append(want, x.Floats()[i*p*cols:(i+1)*p*cols]...)
		}
		optest.Near(t, "prepend token", optest.Eval(t, build, x, token).F32, want, 0)
		optest.CheckGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, token)
	}
}
