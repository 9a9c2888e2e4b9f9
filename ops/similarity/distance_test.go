package similarity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/pool"
	"gorgonia.org/gorgonia"
)

// oracleDistance is the definition for one pair.
func oracleDistance(d Distance, x, y []float32) float64 { return distanceOf(d, wide(x), wide(y)) }

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// oracleGradients returns the gradient for rows f of the scores with rows x under the
// weights of gradients, and that for x, by finite differences of the definition in
// float64. exists says which columns there are.
func oracleGradients(d Distance, f, x []float32, width, columns int, exists func(j int) bool) (df, dx []float32) {
	n, m := len(f)/width, len(x)/width
	w := optest.F32s(rand.New(rand.NewPCG(7, 7)), "weights", n, columns).Data.([]float32)
	df, dx = make([]float32, len(f)), make([]float32, len(x))
	for i := range n {
		for j := range m {
			if !exists(j) {
				continue
			}
			a, b := wide(f[i*width:][:width]), wide(x[j*width:][:width])
			slope := func(v []float64, k int) float32 {
				const h = 1e-7
				old := v[k]
				v[k] = old + h
				up := distanceOf(d, a, b)
				v[k] = old - h
				down := distanceOf(d, a, b)
				v[k] = old
				return w[i*columns+j] * float32((up-down)/(2*h))
			}
			for k := range width {
				df[i*width+k] += slope(a, k)
				dx[j*width+k] += slope(b, k)
			}
		}
	}
	return df, dx
}

// nearGradient compares relative to the largest element.
func nearGradient(t *testing.T, what string, got, want []float32) {
	t.Helper()
	largest := 1e-3
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 5e-3*largest) {
			t.Fatalf("%s[%d]: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

func distanceOf(d Distance, x, y []float64) float64 {
	var sum float64
	if d.Kind == "l2" {
		for i, v := range x {
			sum += (v - y[i]) * (v - y[i])
		}
		return -math.Sqrt(sum)
	}
	unit := len(x) / d.Spheres
	for k := 0; k < len(x); k += unit {
		var c float64
		for i := k; i < k+unit; i++ {
			c += x[i] * y[i]
		}
		a := math.Acos(min(max(c, -1+1e-6), 1-1e-6))
		sum += a * a
	}
	return -math.Sqrt(sum)
}

// sphereRows returns rows whose groups of width/m channels are unit vectors.
func sphereRows(r *rand.Rand, n, width, m int) []float32 { return optest.UnitRows(r, n*m, width/m) }

var distances = []Distance{{"l2", 1}, {"angle", 1}, {"angle", 2}, {"angle", 4}}

// TestNegativeDistance compares batches with and without a queue, full or not, with the
// definition, and gradients to both sides with finite differences.
func TestNegativeDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	for _, d := range distances {
		for _, c := range []struct{ b, keys, queue, cols int }{{1, 1, 0, -1}, {4, 4, 0, -1}, {5, 4, 7, -1}, {5, 4, 7, 8}, {3, 5, 6, 3}, {20, 33, 600, 633}, {18, 5, 6, 0}} {
			const width = 24
			f, keys := sphereRows(r, c.b, width, d.Spheres), sphereRows(r, c.keys, width, d.Spheres)
			queue := sphereRows(r, c.queue, width, d.Spheres)
			in := []optest.Input{optest.In("f", []int{c.b, width}, f), optest.In("keys", []int{c.keys, width}, keys)}
			if c.queue > 0 {
				in = append(in, optest.In("queue", []int{c.queue, width}, queue), optest.I32s("cols", []int32{int32(c.cols)}))
			}
			build := func(ns gorgonia.Nodes) *gorgonia.Node {
				if c.queue == 0 {
					return NegativeDistance(d, ns[0], ns[1], nil, nil)
				}
				if c.cols < 0 {
					return NegativeDistance(d, ns[0], ns[1], ns[2], nil)
				}
				return NegativeDistance(d, ns[0], ns[1], ns[2], ns[3])
			}
			var want []float32
			all := append(append([]float32{}, keys...), queue...)
			for i := range c.b {
				for j := range c.keys + c.queue {
					v := 0.
					if c.cols < 0 || j < c.cols {
						v = oracleDistance(d, f[i*width:][:width], all[j*width:][:width])
					}
					want = append(want, float32(v))
				}
			}
			name := fmt.Sprintf("%+v of %+v", d, c)
			optest.Near(t, name, optest.Eval(t, build, in...).F32, want, 2e-5)
			grads, _ := optest.Gradients(t, build, []int{0, 1}, in...)
			df, dx := oracleGradients(d, f, all, width, c.keys+c.queue, func(j int) bool { return c.cols < 0 || j < c.cols })
			nearGradient(t, name+": gradient of f", grads[0], df)
			nearGradient(t, name+": gradient of keys", grads[1], dx[:c.keys*width])
		}
	}
}

// TestPoolNegativeDistance does the same for pools of any pointer and fill.
func TestPoolNegativeDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 2))
	for i := range 60 {
		d := distances[i%len(distances)]
		const width = 24
		n := 1 + r.IntN(40)
		b, batch := 1+r.IntN(5), 1+r.IntN(n)
		pointer, cols := r.IntN(n), r.IntN(n+1)
		f, keys, queue := sphereRows(r, b, width, d.Spheres), sphereRows(r, batch, width, d.Spheres), sphereRows(r, n, width, d.Spheres)
		merged := append([]float32{}, queue...)
		for k := range batch {
			copy(merged[(pointer+k)%n*width:], keys[k*width:(k+1)*width])
		}
		in := []optest.Input{optest.In("f", []int{b, width}, f), optest.In("keys", []int{batch, width}, keys), optest.In("queue", []int{n, width}, queue),
			optest.I32s("pointer", []int32{int32(pointer)}), optest.I32s("cols", []int32{int32(cols)})}
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			return PoolNegativeDistance(d, ns[0], pool.Pool{Keys: ns[1], Queue: ns[2], Pointer: ns[3], Cols: ns[4]})
		}
		want := make([]float32, b*n)
		for k := range b {
			for j := range cols {
				want[k*n+j] = float32(oracleDistance(d, f[k*width:][:width], merged[j*width:][:width]))
			}
		}
		optest.Near(t, "scores", optest.Eval(t, build, in...).F32, want, 2e-5)
		name := fmt.Sprintf("%+v: %d rows, batch %d at %d of %d, cols %d", d, b, batch, pointer, n, cols)
		grads, _ := optest.Gradients(t, build, []int{0}, in...)
		df, _ := oracleGradients(d, f, merged, width, n, func(j int) bool { return j < cols })
		nearGradient(t, name, grads[0], df)
	}
}

// TestDistanceAtTheEnds: equal and opposite vectors have finite scores and gradients, near
// vectors and large ones keep their digits.
func TestDistanceAtTheEnds(t *testing.T) {
	unit := func(x ...float32) []float32 { optest.Normalise(x); return x }
	a := unit(1, 2, -3, 1)
	opposite := []float32{-a[0], -a[1], -a[2], -a[3]}
	for _, d := range []Distance{{"l2", 1}, {"angle", 1}} {
		in := []optest.Input{optest.In("f", []int{1, 4}, a), optest.In("keys", []int{2, 4}, append(append([]float32{}, a...), opposite...))}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeDistance(d, ns[0], ns[1], nil, nil) }
		got := optest.Eval(t, build, in...).F32
		far := float32(-2)
		if d.Kind == "angle" {
			far = -math.Pi
		}
		if !(math.Abs(float64(got[0])) <= 2e-3) || !(math.Abs(float64(got[1]-far)) <= 2e-3) {
			t.Errorf("%s of equal and opposite vectors: %v", d.Kind, got)
		}
		grads, _ := optest.Gradients(t, build, []int{0, 1}, in...)
		for _, g := range grads {
			for _, v := range g {
				if v != v || math.IsInf(float64(v), 0) {
					t.Errorf("%s: a gradient of equal and opposite vectors is %v", d.Kind, v)
				}
			}
		}
	}
	for _, size := range []float32{1e-3, 1, 1e9, 1e18} {
		x, y := []float32{size, 2 * size, 0}, []float32{size * 1.0001, 2 * size, 0}
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			return NegativeDistance(Distance{Kind: "l2"}, ns[0], ns[1], nil, nil)
		},
			optest.In("f", []int{1, 3}, x), optest.In("keys", []int{1, 3}, y))
		if want := -(float64(y[0]) - float64(x[0])); !(math.Abs(float64(got.F32[0])-want) <= 1e-5*math.Abs(want)) {
			t.Errorf("near vectors of size %g: got %v, want %v", size, got.F32[0], want)
		}
	}
}

// TestL2Range: near rows and large ones keep the digits of value and gradient.
func TestL2Range(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 3))
	const width = 256
	d := Distance{Kind: "l2"}
	for _, c := range []struct{ size, apart float32 }{{1, 1e-5}, {1, 1e-3}, {1, .3}, {1e18, 1}, {1e18, 1e-4}, {1e-18, 1e-3}, {1000, 1e-5}} {
		f, x := optest.F32s(r, "f", 1, width), optest.F32s(r, "x", 1, width)
		a, b := f.Data.([]float32), x.Data.([]float32)
		for i := range a {
			a[i] *= c.size
			b[i] = a[i] + c.size*c.apart*b[i]
		}
		build := func(ns gorgonia.Nodes) *gorgonia.Node { return NegativeDistance(d, ns[0], ns[1], nil, nil) }
		want := oracleDistance(d, a, b)
		if got := float64(optest.Eval(t, build, f, x).F32[0]); !(math.Abs(got/want-1) <= 1e-6) {
			t.Errorf("size %g, apart %g: got %v, want %v", c.size, c.apart, got, want)
		}
		grads, _ := optest.Gradients(t, build, []int{0, 1}, f, x)
		weight := optest.F32s(rand.New(rand.NewPCG(7, 7)), "w", 1).Data.([]float32)[0]
		slope := make([]float32, width)
		for i := range slope {
			slope[i] = weight * float32((float64(a[i])-float64(b[i]))/want)
		}
		optest.Near(t, "df", grads[0], slope, 1e-5)
		for i := range slope {
			slope[i] = -slope[i]
		}
		optest.Near(t, "dkeys", grads[1], slope, 1e-5)
	}
}

// TestObliqueVectors was worked by hand: two unit columns of three channels.
func TestObliqueVectors(t *testing.T) {
	f, x := []float32{1. / 3, 2. / 3, 2. / 3, 0, .6, .8}, []float32{2. / 3, 1. / 3, 2. / 3, .8, .6, 0}
	in := []optest.Input{optest.In("f", []int{1, 6}, f), optest.In("x", []int{1, 6}, x)}
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return NegativeDistance(Distance{"angle", 2}, ns[0], ns[1], nil, nil)
	}, in...)
	optest.Near(t, "oblique geodesic", got.F32, []float32{-1.293267}, 1e-6)
	got = optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return Similarity(ns[0], ns[1], nil, nil) }, in...)
	optest.Near(t, "sum of cosines", got.F32, []float32{1.248889}, 1e-6)
}

func TestDistanceErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 3))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "f", 2, 6), optest.F32s(r, "keys", 3, 6), optest.F32s(r, "narrow", 3, 4)})
	for want, build := range map[string]func(){
		"kind must be l2 or angle":            func() { NegativeDistance(Distance{"cosine", 1}, ns[0], ns[1], nil, nil) },
		"spheres must divide the 6 channels":  func() { NegativeDistance(Distance{"angle", 4}, ns[0], ns[1], nil, nil) },
		"want f (B, C) and keys (B2, C)":      func() { NegativeDistance(Distance{"l2", 1}, ns[0], ns[2], nil, nil) },
		"spheres must divide the 6 channels ": func() { NegativeDistance(Distance{"angle", 0}, ns[0], ns[1], nil, nil) },
	} {
		optest.BuildError(t, "negative distance", want, build)
	}
}

// distanceCases are the cases of the tests that all ops go through.
func distanceCases() []optest.Case {
	r := rand.New(rand.NewPCG(41, 4))
	var cases []optest.Case
	for _, d := range distances {
		in := []optest.Input{optest.In("f", []int{40, 32}, sphereRows(r, 40, 32, d.Spheres)), optest.In("keys", []int{40, 32}, sphereRows(r, 40, 32, d.Spheres)),
			optest.In("queue", []int{700, 32}, sphereRows(r, 700, 32, d.Spheres)), optest.I32s("pointer", []int32{680}), optest.I32s("cols", []int32{690})}
		cases = append(cases,
			optest.Case{Name: fmt.Sprintf("negative distance %v", d), Inputs: in, WRT: []int{0, 1}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return NegativeDistance(d, ns[0], ns[1], ns[2], ns[4])
			}},
			optest.Case{Name: fmt.Sprintf("pool negative distance %v", d), Inputs: in, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return PoolNegativeDistance(d, ns[0], pool.Pool{Keys: ns[1], Queue: ns[2], Pointer: ns[3], Cols: ns[4]})
			}})
	}
	return cases
}
