package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
)

var hyper = Settings{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.02}

func engine(t testing.TB, threads int) *kernel.Engine {
	t.Helper()
	e := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: threads}))(t)
	t.Cleanup(e.Close)
	return e
}

// testdata/adamw.json holds 20 steps of torch.optim.AdamW with two decay groups,
// a changing rate and clipping (tools/goldens/adamw.py).
func TestAgainstPyTorch(t *testing.T) {
	raw := check.Get(os.ReadFile("testdata/adamw.json"))(t)
	var g struct {
		Names                          []string
		Shapes                         [][]int
		Clip, Beta1, Beta2, Eps, Decay float64
		LR, Norm                       []float64
		Start                          []float32
		Grads, Params                  [][]float32
	}
	check.OK(t, json.Unmarshal(raw, &g))
	var segs []Segment
	off := 0
	for i, name := range g.Names {
		n := 1
		for _, d := range g.Shapes[i] {
			n *= d
		}
		group := ""
		if path.Base(name) == "bias" {
			group = "bias"
		}
		decay := check.Get(Decays([]string{"bias", "1d"}, name, group, len(g.Shapes[i])))(t)
		segs = append(segs, Segment{Name: name, Offset: off, Len: n, Decay: decay})
		off += n
	}
	params, grads := append([]float32(nil), g.Start...), make([]float32, off)
	o := check.Get(New(engine(t, 2), params, grads, segs, Settings{Beta1: g.Beta1, Beta2: g.Beta2, Eps: g.Eps,
		Decay: g.Decay, ClipNorm: g.Clip}))(t)
	for step := range g.LR {
		// Twice the gradient with scale 1/2: accumulation over two equal micro-batches.
		for i, v := range g.Grads[step] {
			grads[i] = 2 * v
		}
		norm := o.GradNorm(0.5)
		if !(math.Abs(norm-g.Norm[step]) <= 1e-6*g.Norm[step]) {
			t.Errorf("step %d: norm %v, want %v", step, norm, g.Norm[step])
		}
		o.Step(g.LR[step], 0.5, norm)
		for i, want := range g.Params[step] {
			if d := math.Abs(float64(params[i] - want)); d > 2e-6*math.Max(1, math.Abs(float64(want))) {
				t.Fatalf("step %d, element %d: got %v, want %v", step, i, params[i], want)
			}
		}
	}
	if o.Steps() != len(g.LR) {
		t.Errorf("got %d steps, want %d", o.Steps(), len(g.LR))
	}
}

// randomSlabs returns n parameters and gradients in three segments with a gap.
func randomSlabs(n int) (params, grads []float32, segs []Segment) {
	r := rand.New(rand.NewPCG(1, 2))
	params, grads = make([]float32, n), make([]float32, n)
	for i := range params {
		params[i], grads[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
	}
	return params, grads, []Segment{
		{Name: "a/weight", Len: n / 2, Decay: true}, {Name: "a/bias", Offset: n / 2, Len: 7}, {Name: "b/weight", Offset: n/2 + 16, Len: n - n/2 - 16, Decay: true},
	}
}

// The slab is longer than several chunks, so a wrong cut would show.
func TestThreadsAndGaps(t *testing.T) {
	const n = 5*chunkLen + 123
	var first []float32
	var firstNorm float64
	for _, threads := range []int{1, 2, 3} {
		params, grads, segs := randomSlabs(n)
		before := append([]float32(nil), params...)
		var sum float64
		for _, s := range segs {
			for _, g := range grads[s.Offset : s.Offset+s.Len] {
				sum += float64(g) * float64(g)
			}
		}
		c := hyper
		c.ClipNorm = 0.7
		o := check.Get(New(engine(t, threads), params, grads, segs, c))(t)
		norm := o.GradNorm(1)
		if want := math.Sqrt(sum); !(math.Abs(norm-want) <= 1e-6*want) {
			t.Errorf("norm %v, want %v", norm, want)
		}
		o.Step(1e-2, 1, norm)
		for i := n/2 + 7; i < n/2+16; i++ {
			if params[i] != before[i] {
				t.Errorf("element %d outside the segments changed", i)
			}
		}
		// First step by hand: m = 0.1 g, v = 0.001 g^2, so the update is lr*sign(g) up to eps.
		for _, i := range []int{0, chunkLen, n/2 + 3, n/2 + 16, n - 1} {
			want := before[i]
			if i < n/2 || i >= n/2+16 {
				want -= 1e-2 * 0.02 * before[i]
			}
			want -= 1e-2 * float32(math.Copysign(1, float64(grads[i])))
			if !(math.Abs(float64(params[i]-want)) <= 1e-4) {
				t.Errorf("element %d: got %v, want %v", i, params[i], want)
			}
		}
		if first == nil {
			first, firstNorm = params, norm
			continue
		}
		if norm != firstNorm {
			t.Errorf("%d threads: norm %v, one thread %v", threads, norm, firstNorm)
		}
		for i := range params {
			if params[i] != first[i] {
				t.Fatalf("%d threads: element %d differs from one thread", threads, i)
			}
		}
	}
}

func TestNormReportsNonFinite(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		params, grads, segs := randomSlabs(3 * chunkLen)
		grads[len(grads)-1] = bad
		o := check.Get(New(engine(t, 2), params, grads, segs, hyper))(t)
		if norm := o.GradNorm(1); !math.IsNaN(norm) && !math.IsInf(norm, 0) {
			t.Errorf("gradient with %v: norm %v", bad, norm)
		}
		for i := range grads {
			grads[i] = math.MaxFloat32
		}
		if norm := o.GradNorm(1); math.IsNaN(norm) || math.IsInf(norm, 0) {
			t.Errorf("largest finite gradients: norm %v", norm)
		}
	}
}

func TestResumeIsExact(t *testing.T) {
	const n = chunkLen + 99
	run := func(split bool) []float32 {
		params, grads, segs := randomSlabs(n)
		e := engine(t, 2)
		o := check.Get(New(e, params, grads, segs, hyper))(t)
		for step := range 6 {
			if split && step == 3 {
				p := check.Get(New(e, params, grads, segs, hyper))(t)
				m, v := o.Moments()
				pm, pv := p.Moments()
				copy(pm, m)
				copy(pv, v)
				p.counters = o.counters
				o = p
			}
			for i := range grads {
				grads[i] = float32(math.Sin(float64(i*7 + step)))
			}
			o.Step(1e-3, 1, o.GradNorm(1))
		}
		return params
	}
	whole, resumed := run(false), run(true)
	for i := range whole {
		if whole[i] != resumed[i] {
			t.Fatalf("element %d: %v after resuming, %v without", i, resumed[i], whole[i])
		}
	}
}

func TestNoAllocations(t *testing.T) {
	params, grads, segs := randomSlabs(6 * chunkLen)
	o := check.Get(New(engine(t, 2), params, grads, segs, hyper))(t)
	if n := allocs.PerRun(20, func() { o.Step(1e-3, 1, o.GradNorm(1)) }); n != 0 {
		t.Errorf("got %v allocations a step, want 0", n)
	}
}

func TestDecays(t *testing.T) {
	groups := []string{"bias", "1d", "temperature", "image/pos*", "cls"}
	for _, c := range []struct {
		groups      []string
		name, group string
		axes        int
		want        bool
	}{
		{groups, "image/blocks/00/mlp/weight", "", 2, true},
		{groups, "image/blocks/00/mlp/bias", "bias", 2, false},
		{groups, "image/norm/gamma", "", 1, false},
		{groups, "temperature", "temperature", 0, false},
		{groups, "logit_scale", "temperature", 0, false},
		{groups, "image/position", "", 2, false},
		{groups, "text/image/position", "", 2, true},
		{groups, "image/cls", "", 2, false},
		{[]string{"1d", "bias"}, "temperature", "temperature", 0, true}, // ALBEF's code decays it
		{[]string{"bias"}, "image/unbias", "", 1, true},
		{[]string{"bias"}, "image/offset", "bias", 1, false}, // a name says nothing
		{[]string{"bias"}, "image/bias", "", 1, true},
		{[]string{"metric"}, "gssf/weight", "metric", 2, false},
		{[]string{"metric"}, "temperature", "temperature", 0, true},
		{nil, "a/bias", "bias", 1, true},
	} {
		if got, err := Decays(c.groups, c.name, c.group, c.axes); err != nil || got != c.want {
			t.Errorf("Decays(%v, %q, %q, %d) = %v, %v, want %v", c.groups, c.name, c.group, c.axes, got, err, c.want)
		}
	}
	check.Fails(Decays([]string{"a["}, "a", "", 0))(t, "no_decay")
}

func TestNewErrors(t *testing.T) {
	e := engine(t, 1)
	four := make([]float32, 4)
	bad := hyper
	bad.Beta2 = 1
	for _, c := range []struct {
		name  string
		grads []float32
		segs  []Segment
		c     Settings
		want  string
	}{
		{"lengths", four[:3], nil, hyper, "one length"},
		{"overlap", four, []Segment{{Name: "a", Len: 3}, {Name: "b", Offset: 2, Len: 2}}, hyper, "segment b"},
		{"range", four, []Segment{{Name: "a", Len: 5}}, hyper, "segment a"},
		{"beta", four, nil, bad, "optimizer.beta2"},
	} {
		if _, err := New(e, four, c.grads, c.segs, c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// A frozen segment is never touched, and is saved with its zero moments like the others.
func TestFrozenSegments(t *testing.T) {
	params, grads := []float32{1, 2, 3}, []float32{1, 1, 1}
	o := check.Get(New(engine(t, 1), params, grads,
		[]Segment{{Name: "a", Len: 1}, {Name: "b", Offset: 1, Len: 2, Shape: []int{1, 2}, Frozen: true}}, hyper))(t)
	if norm := o.GradNorm(1); norm != 1 {
		t.Errorf("norm %v counts what is frozen", norm)
	}
	o.Step(0.1, 1, 1)
	if params[0] == 1 || params[1] != 2 || params[2] != 3 {
		t.Errorf("parameters %v", params)
	}
	got := ""
	for _, x := range o.Tensors() {
		got += fmt.Sprintf("%s %v %v; ", x.Name, x.Shape, x.Data.([]float32)[0] != 0)
	}
	if want := "m/a [] true; m/b [1 2] false; v/a [] true; v/b [1 2] false; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
