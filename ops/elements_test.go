package ops

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
)

// random returns n integers in [0, below).
func randomInts(r *rand.Rand, n, below int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(r.IntN(below))
	}
	return x
}

// floats returns the values of a float32 input.
func (in input) floats() []float32 { return in.data.([]float32) }

// randomShapes returns n shapes whose sides are drawn from 1 to each limit.
func randomShapes(r *rand.Rand, n int, limits ...int) [][]int {
	shapes := make([][]int, n)
	for i := range shapes {
		for _, l := range limits {
			shapes[i] = append(shapes[i], 1+r.IntN(l))
		}
	}
	return shapes
}

// runError builds and runs a graph that must fail with an error that holds want.
func runError(t *testing.T, want string, build func(ns gorgonia.Nodes) *gorgonia.Node, inputs ...input) {
	t.Helper()
	g, ns := nodes(inputs)
	m := machine(t, g, ns, inputs, build(ns))
	if err := m.RunAll(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

func TestAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, shape := range append([][]int{{}, {5}, {2, 3, 4}, {7, 3000}}, randomShapes(r, 6, 9, 40)...) {
		x, y := f32s(r, "x", shape...), f32s(r, "y", shape...)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Add(ns[0], ns[1]) }
		want := make([]float32, len(x.floats()))
		for i := range want {
			want[i] = x.floats()[i] + y.floats()[i]
		}
		near(t, "add", eval(t, build, x, y).F32, want, 0)
		checkGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, y)
		twice := func(ns gorgonia.Nodes) *gorgonia.Node { return Add(Add(ns[0], ns[0]), ns[1]) }
		checkGrad(t, twice, []int{0, 1}, 1e-2, 1e-3, x, y)
	}
}

func TestLayerNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, s := range append([][]int{{1, 1}, {200, 32}}, randomShapes(r, 12, 90, 40)...) {
		rows, cols := s[0], s[1]+1 // a row of one value has no gradient
		x, gamma, beta := f32s(r, "x", rows, cols), f32s(r, "gamma", cols), f32s(r, "beta", cols)
		const eps = 1e-3
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], eps) }
		want := make([]float32, rows*cols)
		for i := range rows {
			row := x.floats()[i*cols : (i+1)*cols]
			var mean, variance float64
			for _, v := range row {
				mean += float64(v) / float64(cols)
			}
			for _, v := range row {
				variance += (float64(v) - mean) * (float64(v) - mean) / float64(cols)
			}
			for j, v := range row {
				want[i*cols+j] = float32((float64(v)-mean)/math.Sqrt(variance+eps))*gamma.floats()[j] + beta.floats()[j]
			}
		}
		near(t, "layer norm", eval(t, build, x, gamma, beta).F32, want, 1e-5)
		checkGrad(t, build, []int{0, 1, 2}, 1e-3, 1e-2, x, gamma, beta)
	}
}

func TestGELU(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	for _, shape := range append([][]int{{9}, {5, 2000}}, randomShapes(r, 6, 9, 40)...) {
		x := f32s(r, "x", shape...)
		for i := range x.floats() {
			x.floats()[i] *= 4
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return GELU(ns[0]) }
		want := make([]float32, len(x.floats()))
		for i, v := range x.floats() {
			want[i] = float32(float64(v) * 0.5 * math.Erfc(-float64(v)/math.Sqrt2))
		}
		near(t, "gelu", eval(t, build, x).F32, want, 1e-5)
		checkGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}

func TestDropout(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for _, s := range append([][]int{{1, 1}, {4, 31}, {3, 32}, {5, 33}, {7, 96}, {40, 1000}}, randomShapes(r, 10, 9, 130)...) {
		rows, cols := s[0], s[1]
		const keep = 0.75
		x := f32s(r, "x", rows, cols)
		key := i32s("key", []int32{12, -7}, 2)
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			return Dropout(ns[0], DropoutBits(ns[1], 3, rows, cols, keep), keep)
		}
		bits := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[1], 3, rows, cols, keep) }, x, key).I32
		want := make([]float32, rows*cols)
		for i := range rows {
			for j := range cols {
				if bits[i*((cols+31)/32)+j/32]>>(j%32)&1 == 1 {
					want[i*cols+j] = x.floats()[i*cols+j] / keep
				}
			}
		}
		near(t, "dropout", eval(t, build, x, key).F32, want, 1e-6)
		checkGrad(t, build, []int{0}, 1e-2, 1e-3, x, key)
	}
}

// TestDropoutBits looks at the share of ones (binomial: 5 standard deviations), at
// the independence of keys, sites and neighbours, and that chunks do not matter.
func TestDropoutBits(t *testing.T) {
	const rows, cols = 40, 1024
	words := func(key []int32, site uint64, keep float32) []int32 {
		return eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], site, rows, cols, keep) }, i32s("key", key, 2)).I32
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
	short := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 0, 1, 96, 0.5) }, i32s("key", []int32{1, 2}, 2)).I32
	if !slices.Equal(short, base[:3]) {
		t.Errorf("words depend on the length of the mask: %x, %x", short, base[:3])
	}
	// The stream of a key and a site is fixed: a mask is part of what a resumed run
	// must repeat. The kernel's own tests pin the words.
	want := make([]int32, rows*cols/32)
	kernel.DropoutBits(want, 0xdaa66d2e7ddf7440, 0, 0.5) // 2<<32 + 1 + 3*0x9e3779b97f4a7c15
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
		key := i32s("key", []int32{int32(r.Uint32()), int32(r.Uint32())}, 2)
		words := func(n, cols int) []int32 {
			return eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], site, n, cols, keep) }, key).I32
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
		x, index := f32s(r, "x", n*block, cols), i32s("index", randomInts(r, rows, n), rows)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return GatherRows(ns[0], ns[1], block) }
		var want []float32
		for _, k := range index.data.([]int32) {
			want = append(want, x.floats()[int(k)*block*cols:(int(k)+1)*block*cols]...)
		}
		near(t, "gather", eval(t, build, x, index).F32, want, 0)
		checkGrad(t, build, []int{0}, 1e-2, 1e-3, x, index)
		if block == 1 {
			embed := func(ns gorgonia.Nodes) *gorgonia.Node { return Embed(ns[0], ns[1]) }
			near(t, "embed", eval(t, embed, x, index).F32, want, 0)
			checkGrad(t, embed, []int{0}, 1e-2, 1e-3, x, index)
		}
	}
}

func TestIndexErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	x := f32s(r, "x", 6, 2)
	embed := func(ns gorgonia.Nodes) *gorgonia.Node { return Embed(ns[0], ns[1]) }
	gather := func(ns gorgonia.Nodes) *gorgonia.Node { return GatherRows(ns[0], ns[1], 2) }
	runError(t, "embed: index 6 at position 1: want [0, 6)", embed, x, i32s("i", []int32{0, 6}, 2))
	runError(t, "embed: index -1 at position 0: want [0, 6)", embed, x, i32s("i", []int32{-1, 6}, 2))
	runError(t, "gather rows: index 3 at position 2: want [0, 3)", gather, x, i32s("i", []int32{0, 2, 3}, 3))
}

func TestPositions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for _, s := range append([][]int{{1, 1, 0, 1}, {2, 1, 1, 7}, {5, 3, 0, 2}, {9, 20, 11, 130}}, randomShapes(r, 10, 6, 9, 5, 40)...) {
		b, l, n, cols := s[0], s[1], s[1]+s[2], s[3]
		x, table, row := f32s(r, "x", b*l, cols), f32s(r, "table", n, cols), f32s(r, "row", cols)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], l) }
		addRow := func(ns gorgonia.Nodes) *gorgonia.Node { return AddRow(ns[0], ns[2]) }
		want, wantRow := make([]float32, b*l*cols), make([]float32, b*l*cols)
		for i := range want {
			want[i] = x.floats()[i] + table.floats()[i%(l*cols)]
			wantRow[i] = x.floats()[i] + row.floats()[i%cols]
		}
		near(t, "add positions", eval(t, build, x, table, row).F32, want, 0)
		near(t, "add row", eval(t, addRow, x, table, row).F32, wantRow, 0)
		checkGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, table, row)
		checkGrad(t, addRow, []int{0, 2}, 1e-2, 1e-3, x, table, row)
	}
}

func TestL2Normalize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, s := range append([][]int{{1, 2}, {70, 300}}, randomShapes(r, 8, 20, 40)...) {
		x := f32s(r, "x", s[0], s[1])
		build := func(eps float32) func(ns gorgonia.Nodes) *gorgonia.Node {
			return func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], eps) }
		}
		for _, eps := range []float32{1e-12, 100} { // rows longer and shorter than eps
			want := make([]float32, s[0]*s[1])
			for i := range s[0] {
				row := x.floats()[i*s[1] : (i+1)*s[1]]
				var sq float64
				for _, v := range row {
					sq += float64(v) * float64(v)
				}
				for j, v := range row {
					want[i*s[1]+j] = v / float32(max(math.Sqrt(sq), float64(eps)))
				}
			}
			near(t, "l2 normalize", eval(t, build(eps), x).F32, want, 1e-6)
			checkGrad(t, build(eps), []int{0}, 1e-2, 1e-2, x)
		}
	}
	zero := input{"x", []int{1, 3}, make([]float32, 3)}
	near(t, "zero row", eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], 1e-12) }, zero).F32, make([]float32, 3), 0)
}

func TestPatchify(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 10))
	for _, s := range append([][]int{{1, 1, 2, 2, 1}, {2, 3, 4, 4, 16}}, randomShapes(r, 10, 3, 4, 4, 4, 5)...) {
		b, ch, h, w, p := s[0], s[1], s[2]*s[4], s[3]*s[4], s[4]
		x := f32s(r, "x", b, ch, h, w)
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Patchify(ns[0], p) }
		var want []float32
		for i := range b {
			for y := 0; y < h; y += p {
				for z := 0; z < w; z += p {
					for c := range ch {
						for dy := range p {
							for dz := range p {
								want = append(want, x.floats()[((i*ch+c)*h+y+dy)*w+z+dz])
							}
						}
					}
				}
			}
		}
		near(t, "patchify", eval(t, build, x).F32, want, 0)
		checkGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}

func TestPrependToken(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	for _, s := range append([][]int{{1, 1, 0, 1}, {3, 2, 0, 4}, {20, 10, 2, 100}}, randomShapes(r, 10, 5, 6, 3, 20)...) {
		b, p, k, cols := s[0], s[1], s[2], s[3]
		x, token := f32s(r, "x", b*p, cols), f32s(r, "token", cols)
		if k > 0 {
			token = f32s(r, "token", k, cols)
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return PrependToken(ns[0], ns[1], p) }
		var want []float32
		for i := range b {
			want = append(want, token.floats()...)
			want = append(want, x.floats()[i*p*cols:(i+1)*p*cols]...)
		}
		near(t, "prepend token", eval(t, build, x, token).F32, want, 0)
		checkGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, token)
	}
}

func TestStridedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	for _, s := range append([][]int{{0, 1, 0, 1, 1}, {0, 2, 0, 1, 5}, {40, 100, 1, 4, 40}}, randomShapes(r, 15, 6, 20, 5, 4, 8)...) {
		cols, start, stride, count := s[1], s[2], s[3], s[4]
		rows := start + (count-1)*stride + 1 + s[0]
		x := f32s(r, "x", rows, cols)
		// Twice the rows: all rows of an input are the input itself, which is no op.
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			y := StridedRows(ns[0], start, stride, count)
			return Add(y, y)
		}
		var want []float32
		for i := range count {
			for j := range cols {
				want = append(want, 2*x.floats()[(start+i*stride)*cols+j])
			}
		}
		near(t, "strided rows", eval(t, build, x).F32, want, 0)
		checkGrad(t, build, []int{0}, 1e-2, 1e-3, x)
	}
}

func TestReduce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	shapes := [][]int{{}, {1}, {5}, {3, 4}, {90, 100}, {1, 4096}, {4097, 1}}
	for axes := range 5 {
		shapes = append(shapes, randomShapes(r, 3, []int{9, 7, 5, 6}[:axes]...)...)
	}
	for _, shape := range shapes {
		x := f32s(r, "x", shape...)
		sum, size := 0.0, 0.0
		for _, v := range x.floats() {
			sum += float64(v)
			size += math.Abs(float64(v))
		}
		n := float64(len(x.floats()))
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return Sum(ns[0]) }
		mean := func(ns gorgonia.Nodes) *gorgonia.Node { return Mean(ns[0]) }
		// The error is relative to the sum of the absolute values: terms may cancel.
		if got := float64(eval(t, build, x).F32[0]); !(math.Abs(got-sum) <= 1e-6*size) {
			t.Errorf("sum of %v: got %v, want %v", shape, got, sum)
		}
		if got := float64(eval(t, mean, x).F32[0]); !(math.Abs(got-sum/n) <= 1e-6*size/n) {
			t.Errorf("mean of %v: got %v, want %v", shape, got, sum/n)
		}
		// Both are linear, so a large step loses nothing to rounding.
		checkGrad(t, build, []int{0}, 1, 1e-2, x)
		checkGrad(t, mean, []int{0}, 1, 1e-2, x)
	}
}

func TestWeightedSum(t *testing.T) {
	x, y := input{"x", []int{}, []float32{3}}, input{"y", []int{}, []float32{-2}}
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return WeightedSum([]float32{0.5, 2}, ns[0], ns[1]) }
	near(t, "weighted sum", eval(t, build, x, y).F32, []float32{-2.5}, 0) // 0.5*3 + 2*-2
	checkGrad(t, build, []int{0, 1}, 1e-2, 1e-3, x, y)
	weights := []float32{1, 1}
	late := func(ns gorgonia.Nodes) *gorgonia.Node {
		n := WeightedSum(weights, ns[0], ns[1])
		weights[0] = 9 // the caller's slice is not kept
		return n
	}
	near(t, "weighted sum", eval(t, late, x, y).F32, []float32{1}, 0)
}

// TestWeightedSumFuzz compares random numbers of operands with the definition.
func TestWeightedSumFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 16))
	for n := 1; n < 12; n++ {
		weights := f32s(r, "weights", n).floats()
		var in []input
		var wrt []int
		want := 0.0
		for i, w := range weights {
			in = append(in, f32s(r, "x"+string(rune('a'+i))))
			wrt = append(wrt, i)
			want += float64(w) * float64(in[i].floats()[0])
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return WeightedSum(weights, ns...) }
		if got := float64(eval(t, build, in...).F32[0]); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%d operands: got %v, want %v", n, got, want)
		}
		checkGrad(t, build, wrt, 1e-1, 1e-3, in...)
	}
}

func TestDetach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 14))
	for _, shape := range append([][]int{{}, {3, 4}}, randomShapes(r, 6, 9, 40)...) {
		x, y := f32s(r, "x", shape...), f32s(r, "y", shape...)
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			h := GELU(ns[0])
			return Add(Add(Detach(h), h), ns[1])
		}
		grads, _ := gradients(t, build, []int{0}, x, y)
		plain, _ := gradients(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Add(GELU(ns[0]), ns[1]) }, []int{0}, x, y)
		near(t, "gradient past a detached path", grads[0], plain[0], 0)
		want := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			h := GELU(ns[0])
			return Add(Add(h, h), ns[1])
		}, x, y)
		near(t, "detached value", eval(t, build, x, y).F32, want.F32, 0)
	}
	ids := i32s("ids", []int32{3, -1}, 2)
	if got := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return ConcatInts(Detach(ns[0])) }, ids).I32; !slices.Equal(got, []int32{3, -1}) {
		t.Errorf("detached ids: got %v", got)
	}
}

// TestBuildErrors gives every op operands that do not fit.
func TestBuildErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 15))
	in := []input{
		f32s(r, "m", 6, 4), f32s(r, "other", 6, 5), f32s(r, "v", 4), f32s(r, "w", 3), f32s(r, "s"),
		i32s("i", make([]int32, 2), 2), f32s(r, "image", 2, 3, 6, 4), i32s("k", make([]int32, 3), 3),
	}
	_, ns := nodes(in)
	m, other, v, w, s, ids, image, k := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[7]
	for _, c := range []struct {
		want  string
		build func()
	}{
		{"want two arrays of one shape", func() { Add(m, other) }},
		{"operand 1 is nil", func() { Add(m, nil) }},
		{"want x (R, D)", func() { LayerNorm(v, v, v, 1) }},
		{"gamma must have shape (4)", func() { LayerNorm(m, w, v, 1) }},
		{"beta must have shape (4)", func() { LayerNorm(m, v, w, 1) }},
		{"eps must not be negative", func() { LayerNorm(m, v, v, -1) }},
		{"key must have shape (2)", func() { DropoutBits(k, 0, 1, 1, 0.5) }},
		{"at least one row and column", func() { DropoutBits(ids, 0, 0, 1, 0.5) }},
		{"keep must be in (0, 1] (got 0)", func() { DropoutBits(ids, 0, 1, 1, 0) }},
		{"keep must be in (0, 1] (got 1.5)", func() { DropoutBits(ids, 0, 1, 1, 1.5) }},
		{"bits must have shape (6)", func() { Dropout(m, ids, 0.5) }},
		{"want x (R, D)", func() { Dropout(v, ids, 0.5) }},
		{"keep must be in (0, 1] (got -1)", func() { Dropout(m, DropoutBits(ids, 0, 6, 4, 0.5), -1) }},
		{"want a matrix and an index vector", func() { Embed(v, ids) }},
		{"rows must be a multiple of 4 (got 6)", func() { GatherRows(m, ids, 4) }},
		{"a block has at least one row", func() { GatherRows(m, ids, 0) }},
		{"rows must be a multiple of 4 (got 6)", func() { AddPositions(m, m, 4) }},
		{"table must have at least 6 rows", func() { AddPositions(m, StridedRows(m, 0, 1, 3), 6) }},
		{"want x (B*l, D) and table (N, D)", func() { AddPositions(m, other, 2) }},
		{"a sequence has at least one row", func() { AddPositions(m, m, 0) }},
		{"row must have shape (4)", func() { AddRow(m, w) }},
		{"want x (R, D)", func() { AddRow(v, v) }},
		{"want x (R, D)", func() { L2Normalize(v, 1) }},
		{"eps must be positive", func() { L2Normalize(m, 0) }},
		{"multiples of 3 (got 6, 4)", func() { Patchify(image, 3) }},
		{"want images (B, C, H, W)", func() { Patchify(m, 1) }},
		{"a patch has at least one pixel", func() { Patchify(image, 0) }},
		{"token must have 4 columns", func() { PrependToken(m, w, 2) }},
		{"rows must be a multiple of 4", func() { PrependToken(m, v, 4) }},
		{"want token (D) or (K, D)", func() { PrependToken(m, s, 2) }},
		{"a sequence has at least one row", func() { PrependToken(m, v, 0) }},
		{"row 6 is the last one asked for, x has 6", func() { StridedRows(m, 0, 2, 4) }},
		{"at least 0, 1 and 1 (got 0, 0, 1)", func() { StridedRows(m, 0, 0, 1) }},
		{"want x (R, D)", func() { StridedRows(v, 0, 1, 1) }},
		{"want a weight for each operand (got 1 weights, 2 operands)", func() { WeightedSum([]float32{1}, s, s) }},
		{"want a weight for each operand (got 0 weights, 0 operands)", func() { WeightedSum(nil) }},
		{"operand 1 must be a scalar", func() { WeightedSum([]float32{1, 1}, s, v) }},
		{"operand 0 is nil", func() { Detach(nil) }},
		{"want x (R, in) and w (out, in)", func() { Linear(v, m, nil) }},
		{"x has 5 columns, w 4", func() { Linear(other, m, nil) }},
		{"bias must have shape (6)", func() { Linear(m, m, v) }},
		{"in the 6 rows of w (got 2 rows from 5)", func() { LinearPart(m, m, nil, 5, 2) }},
		{"in the 6 rows of w (got 2 rows from -1)", func() { LinearPart(m, m, nil, -1, 2) }},
		{"at least one row", func() { LinearPart(m, m, nil, 0, 0) }},
		{"operand 0 is nil", func() { GELU(nil) }},
		{"operand 0 is nil", func() { Sum(nil) }},
		{"operand 0 is nil", func() { Mean(nil) }},
		{"want a scalar (got (4))", func() { DivScalar(m, v) }},
		{"want a scalar (got (4))", func() { MulScalar(m, v) }},
		{"operand 1 is nil", func() { MulScalar(m, nil) }},
		{"want at least one axis", func() { IotaInts(s) }},
	} {
		var err error
		func() {
			defer Catch(&err)
			c.build()
		}()
		var be *BuildError
		if !errors.As(err, &be) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want a BuildError with %q", err, c.want)
		}
	}
}
