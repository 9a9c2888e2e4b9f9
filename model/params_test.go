package model

import (
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/optim"
	"gorgonia.org/gorgonia"
)

// TestTwinsAreEncodersAndProjections pins which parameters the teacher has:
// everything but the match head and the temperature.
func TestTwinsAreEncodersAndProjections(t *testing.T) {
	m := modelOn(t, tinyConfig(), newEngine(t))
	var without []string
	for _, q := range m.params.List() {
		if !q.Momentum {
			without = append(without, q.Name)
		}
	}
	if want := []string{"itm_head/bias", "itm_head/weight", "temperature"}; !slices.Equal(without, want) {
		t.Errorf("without a twin: %v, want %v", without, want)
	}
	for _, name := range []string{"image/pos_embed", "image_proj/weight", "text/embeddings/word/weight",
		"text/layers/03/crossattention/kv/weight", "text/mlm/bias", "text_proj/bias"} {
		if q, ok := m.params.Get(name); !ok || !q.Momentum {
			t.Errorf("%s has no twin", name)
		}
	}
	cfg := tinyConfig()
	cfg.Momentum.Enabled, cfg.Queue.Size = false, 0
	cfg.Objective.Distill.Alpha, cfg.Objective.ITC.Weight = 0, 0
	m = modelOn(t, cfg, newEngine(t))
	for _, q := range m.params.List() {
		if q.Momentum {
			t.Errorf("%s has a twin without momentum", q.Name)
		}
	}
}

// TestFlatBuffers says that values, gradients and runs of twins lie where List and
// Offset say, each exactly once, and that twins start as copies.
func TestFlatBuffers(t *testing.T) {
	m := modelOn(t, tinyConfig(), newEngine(t))
	p := m.params
	next, twins := 0, 0
	last := ""
	for _, q := range p.List() {
		if q.Name <= last {
			t.Errorf("%s after %s", q.Name, last)
		}
		last = q.Name
		if p.Offset(q) != next || &p.Value(q)[0] != &p.Values()[next] || &p.Grad(q)[0] != &p.Grads()[next] {
			t.Errorf("%s does not lie at %d", q.Name, next)
		}
		next += q.Len()
		if q.Momentum {
			twins += q.Len()
			if !sameBits(p.Value(q), p.MomentumValue(q)) {
				t.Errorf("the EMA copy of %s does not start as its copy", q.Name)
			}
		}
	}
	if next != p.Count() || next != len(p.Values()) || next != len(p.Grads()) {
		t.Errorf("parameters have %d values, the buffers %d", next, len(p.Values()))
	}
	// Number the values; each twin must be paired with its own parameter.
	for i := range p.Values() {
		p.Values()[i] = float32(i)
	}
	for _, q := range p.List() {
		if q.Momentum {
			for i := range p.MomentumValue(q) {
				p.MomentumValue(q)[i] = float32(p.Offset(q) + i)
			}
		}
	}
	covered := 0
	p.MomentumRuns(func(offset int, twin []float32) {
		value := p.Values()[offset:][:len(twin)]
		covered += len(value)
		if !slices.Equal(value, twin) {
			t.Errorf("a run of %d twins belongs to other parameters", len(twin))
		}
	})
	if covered != twins {
		t.Errorf("runs cover %d values, %d have twins", covered, twins)
	}
}

// TestUpdateMomentum by hand: theta = 1, theta_m = 0, m = .995 gives .005; and a loop over
// random values. A learning rate of 0 keeps the parameters.
func TestUpdateMomentum(t *testing.T) {
	m := modelOn(t, tinyConfig(), newEngine(t))
	p := m.params
	o, err := optim.New(m.engine, p.Values(), p.Grads(), []optim.Segment{{Name: "all", Len: p.Count()}}, optim.Settings{Beta1: .9, Beta2: .98, Eps: 1e-8})
	if err != nil {
		t.Fatal(err)
	}
	var twins []optim.Twin
	p.MomentumRuns(func(offset int, twin []float32) { twins = append(twins, optim.Twin{Offset: offset, Values: twin}) })
	check.OK(t, o.SetTwins(twins))
	for i := range p.Values() {
		p.Values()[i] = 1
	}
	clear(p.momentum)
	o.StepTwins(0, 1, 1, 0.995)
	for i, v := range p.momentum {
		if !(math.Abs(float64(v)-0.005) <= 1e-9) {
			t.Fatalf("twin %d is %v, want .005", i, v)
		}
	}
	for i := range p.Values() {
		p.Values()[i] = float32(math.Sin(float64(i)))
	}
	before := slices.Clone(p.momentum)
	values := slices.Clone(p.Values())
	o.StepTwins(0, 1, 1, 0.9)
	for _, q := range p.List() {
		if !q.Momentum {
			continue
		}
		for i, got := range p.MomentumValue(q) {
			want := 0.9*float64(before[q.mirror+i]) + 0.1*float64(p.Value(q)[i])
			if !(math.Abs(float64(got)-want) <= 1e-7) {
				t.Fatalf("twin of %s[%d] is %v, want %v", q.Name, i, got, want)
			}
		}
	}
	if !sameBits(values, p.Values()) {
		t.Error("the update changed the parameters")
	}
	least := math.Inf(1) // on a busy machine the runtime allocates where a thread has to wait
	for range 5 {
		least = min(least, testing.AllocsPerRun(5, func() { o.StepTwins(0, 1, 1, 0.5) }))
	}
	if least != 0 {
		t.Errorf("an update makes %v allocations", least)
	}
}

// TestClampTemperature uses the range of ALBEF's code, [.001, .5].
func TestClampTemperature(t *testing.T) {
	m := modelOn(t, tinyConfig(), newEngine(t))
	q, _ := m.params.Get(temperatureName)
	for _, c := range []struct{ in, want float32 }{{-1, .001}, {0, .001}, {.07, .07}, {.5, .5}, {3, .5}} {
		m.params.Value(q)[0] = c.in
		m.ClampTemperature()
		if got := m.Temperature(); float32(got) != c.want {
			t.Errorf("%v becomes %v, want %v", c.in, got, c.want)
		}
	}
}

// TestInitialValues looks at one parameter of each kind of start: truncated
// normals of ViT, normals of BERT, PyTorch's default of the projections.
func TestInitialValues(t *testing.T) {
	cfg := tinyConfig()
	m := modelOn(t, cfg, newEngine(t))
	stats := func(name string) (mean, std, most float64) {
		q, ok := m.params.Get(name)
		if !ok {
			t.Fatalf("no parameter %s", name)
		}
		v := m.params.Value(q)
		var s, ss float64
		for _, x := range v {
			s, ss = s+float64(x), ss+float64(x)*float64(x)
			most = max(most, math.Abs(float64(x)))
		}
		n := float64(len(v))
		return s / n, math.Sqrt(ss/n - s/n*s/n), most
	}
	for _, name := range []string{"image/blocks/01/mlp/fc1/weight", "text/layers/03/crossattention/query/weight", "text/embeddings/word/weight"} {
		// 576 values or more: the standard error of the deviation is at most 3%.
		if mean, std, _ := stats(name); !(math.Abs(std-.02) <= .003) || !(math.Abs(mean) <= .004) {
			t.Errorf("%s starts with mean %v and deviation %v, want 0 and .02", name, mean, std)
		}
	}
	// U(+-1/sqrt(24)): deviation .2041/sqrt 3 = .1179, 192 values.
	if _, std, most := stats("text_proj/weight"); !(math.Abs(std-.1179) <= .02) || most > 1/math.Sqrt(24) {
		t.Errorf("text_proj/weight starts with deviation %v and largest value %v", std, most)
	}
	for _, q := range m.params.List() {
		want := float32(0)
		switch {
		case q.Name == temperatureName:
			want = .07
		case strings.HasSuffix(q.Name, "norm/weight") || strings.HasSuffix(q.Name, "norm1/weight") || strings.HasSuffix(q.Name, "norm2/weight"):
			want = 1
		case strings.HasSuffix(q.Name, "/bias") && !strings.Contains(q.Name, "proj/bias") && !strings.HasPrefix(q.Name, "itm_head") || strings.HasSuffix(q.Name, "attn/proj/bias"):
		default:
			continue
		}
		for _, v := range m.params.Value(q) {
			if v != want {
				t.Fatalf("%s starts at %v, want %v", q.Name, v, want)
			}
		}
	}
}

// TestParameterMisuse: a name with two shapes, a new name after the store was
// sealed, and a twin of a parameter without one are programmer errors.
func TestParameterMisuse(t *testing.T) {
	p := NewParams(1, true)
	b := p.bind(gorgonia.NewGraph(), false)
	b.Param("a", encoders.Traits{Momentum: true}, encoders.Zeros, 2, 3)
	b.Param("b", encoders.Traits{}, encoders.Zeros, 2)
	mustPanic := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s was accepted", what)
			}
		}()
		f()
	}
	mustPanic("another shape", func() { b.Param("a", encoders.Traits{}, encoders.Zeros, 3, 2) })
	mustPanic("another shape in another graph", func() { p.bind(gorgonia.NewGraph(), false).Param("a", encoders.Traits{}, encoders.Zeros, 6) })
	mustPanic("a twin that does not exist", func() { p.bind(gorgonia.NewGraph(), true).Param("b", encoders.Traits{}, encoders.Zeros, 2) })
	check.OK(t, p.seal())
	mustPanic("a name after sealing", func() { b.Param("c", encoders.Traits{}, encoders.Zeros, 2) })
	if n := b.Param("a", encoders.Traits{}, encoders.Zeros, 2, 3); n == nil || n.Name() != "a" {
		t.Error("a known parameter was not handed out again")
	}
}

// TestSeedDecidesParameters: each parameter depends on seed and name alone.
func TestSeedDecidesParameters(t *testing.T) {
	e := newEngine(t)
	small := modelOn(t, tinyConfig(), e)
	cfg := tinyConfig()
	cfg.Model.Image.Depth++
	deep := modelOn(t, cfg, e)
	cfg.Run.Seed++
	other := modelOn(t, cfg, e)
	for _, q := range small.params.List() {
		d, _ := deep.params.Get(q.Name)
		o, _ := other.params.Get(q.Name)
		if !sameBits(small.params.Value(q), deep.params.Value(d)) {
			t.Errorf("a further block changed the start of %s", q.Name)
		}
		if strings.HasSuffix(q.Name, "qkv/weight") && sameBits(small.params.Value(q), other.params.Value(o)) {
			t.Errorf("another seed did not change the start of %s", q.Name)
		}
	}
}

// TestGroupsAreThoseOfTheNames: what optimizer.no_decay calls bias, temperature and metric is
// what was called so by the last part of the name before parameters had groups.
func TestGroupsAreThoseOfTheNames(t *testing.T) {
	e := newEngine(t)
	own := everyIdea()
	own.Objective.Geodesic.Temperature = 0.1
	logs := tinyCLIP("Multi(2,4)")
	for name, cfg := range map[string]config.Config{
		"albef": allOn(), "every idea": everyIdea(), "temperature of its own": own, "clip": logs, "heads": tinyHeads(),
		"moco": tinyViews(t, "moco"), "swav": tinyViews(t, "swav"),
	} {
		m := modelOn(t, cfg, e)
		for _, q := range m.params.List() {
			want := ""
			switch base := path.Base(q.Name); {
			case base == "bias":
				want = encoders.GroupBias
			case base == "temperature" || base == "logit_scale":
				want = encoders.GroupTemperature
			case q.Name == encoders.MetricName(encoders.SimilaritySite):
				want = encoders.GroupMetric
			}
			if q.Group != want {
				t.Errorf("%s: %s is in the group %q, want %q", name, q.Name, q.Group, want)
			}
		}
	}
}
