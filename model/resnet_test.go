package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
)

// narrow is a residual network of 2 channels for images of 8 x 8.
var narrow = []string{"model.image.style=resnet", "model.image.resnet.depth=18", "model.image.resnet.width=2", "model.image.resnet.small_stem=true"}

// keysOf are the features that a batch of 4 leaves in the queue.
func keysOf(t *testing.T, m *Trainer, b Batch, counter int) []float32 {
	t.Helper()
	forward(t, m, b, Control{Step: counter, UseQueue: true})
	k := check.Get(m.Features())(t)
	return slices.Clone(k.Image)
}

// TestResNetTeacher: the twin's batch norms see the batch, in shuffled groups of it that a step draws anew, or as in
// inference nothing but the image.
func TestResNetTeacher(t *testing.T) {
	other := viewsBatch(1)
	const row = 3 * 8 * 8
	for i := 2 * row; i < len(other.Views); i++ { // the images behind the second
		other.Views[i] *= -1
	}
	for _, c := range []struct {
		set     string
		batch   bool // a key depends on other images of the batch
		counter bool // and on the step's draw
	}{
		{"model.image.resnet.teacher_norm=batch", true, false},
		{"model.image.resnet.teacher_norm=running", false, false},
		{"model.image.resnet.shuffle_groups=2", true, true},
	} {
		m := newViewsSystem(t, tinyViews(t, "moco", append(slices.Clone(narrow), c.set)...))
		a, b := keysOf(t, m, viewsBatch(1), 0), keysOf(t, m, other, 0)
		if same := sameBits(a[:6], b[:6]); same == c.batch {
			t.Errorf("%s: other images of the batch change a key: %v", c.set, !same)
		}
		drawn := false
		for counter := 6; counter > 0; counter-- {
			if !sameBits(a, keysOf(t, m, viewsBatch(1), counter)) {
				drawn = true
			}
			order, back := m.ints("shuffle/1/order"), m.ints("shuffle/1/back")
			if (len(order) == 4) != c.counter {
				t.Errorf("%s: %d images are shuffled", c.set, len(order))
			}
			for i, from := range order {
				if back[from] != int32(i) {
					t.Errorf("image %d is looked for at %d and lies at %d", from, back[from], i)
				}
			}
		}
		if drawn != c.counter {
			t.Errorf("%s: another step draws other groups: %v", c.set, drawn)
		}
		if !sameBits(a, keysOf(t, m, viewsBatch(1), 0)) {
			t.Errorf("%s: a step made again has other keys", c.set)
		}
	}
}

// TestResNetGroupStatistics: running statistics move by the mean over the groups of a batch.
func TestResNetGroupStatistics(t *testing.T) {
	m := newViewsSystem(t, tinyViews(t, "moco", append(slices.Clone(narrow), "model.image.resnet.shuffle_groups=2")...))
	name := "image/bn1/running_mean"
	x := slices.IndexFunc(m.step.norms.list, func(x statistic) bool { return x.name == name })
	if len(m.step.norms.list) != 2*20 || x < 0 || len(m.step.norms.list[x].groups) != 2 {
		t.Fatalf("%d statistics", len(m.step.norms.list))
	}
	forward(t, m, viewsBatch(1), Control{UseQueue: true})
	var mean [2]float64
	for _, group := range m.step.norms.list[x].groups {
		v := check.Get(m.step.machine.Value(group))(t)
		for j := range mean {
			mean[j] += float64(v.F32[j]) / 2
		}
	}
	check.OK(t, m.After())
	q, _ := m.params.Get(name)
	for j, got := range m.params.Value(q) {
		if want := .1 * mean[j]; !(math.Abs(float64(got)-want) <= 1e-6) {
			t.Errorf("channel %d moves to %v, want %v", j, got, want)
		}
	}
}

// TestResNetSystems: the tower is one of every system that reads images; what is frozen has no gradient, and the twins
// of running statistics follow them.
func TestResNetSystems(t *testing.T) {
	narrowed := func(cfg config.Config, sets ...string) config.Config {
		cfg = check.Get(cfg.With(append(slices.Clone(narrow), sets...)...))(t)
		return cfg
	}
	pair := tinyCLIP("sphere")
	for name, cfg := range map[string]config.Config{
		"clip":       narrowed(pair, "model.image.resnet.frozen_stages=2"),
		"clip 50":    narrowed(pair, "model.image.resnet.depth=50", "model.image.resnet.frozen_norm=true", "compute.recompute=true"),
		"tokens":     narrowed(pair, "model.interaction.kind=max_sum"),
		"identities": narrowed(tinyIdentities(t)),
		"moco":       narrowed(tinyViews(t, "moco")),
		"swav":       narrowed(tinyViews(t, "swav")),
	} {
		m := buildCLIP(t, cfg)
		b := randomPairs(m, 3)
		if cfg.Has(section.ImagesAlone) {
			b = viewsBatch(3)
			if name == "identities" {
				b = identitiesBatch()
			}
		}
		var losses []float64
		for range 15 {
			r, err := m.Forward(b, Control{UseQueue: true})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			losses = append(losses, r.Loss)
			for i, g := range m.Params().Grads() {
				m.Params().Values()[i] -= .02 * g
			}
		}
		if last := losses[len(losses)-1]; !(last < losses[0]) {
			t.Errorf("%s: the loss goes from %v to %v", name, losses[0], last)
		}
		for _, q := range m.Params().List() {
			if !strings.HasPrefix(q.Name, "image/") {
				continue
			}
			norm := strings.Contains(q.Name, "/bn") || strings.Contains(q.Name, "downsample/1")
			first := strings.HasPrefix(q.Name, "image/conv1") || strings.HasPrefix(q.Name, "image/bn1") || strings.HasPrefix(q.Name, "image/layer1/")
			frozen := cfg.Model.Image.ResNet.FrozenStages == 2 && first
			want := !strings.Contains(q.Name, "running_") && !frozen && !(norm && cfg.Model.Image.ResNet.FrozenNorm)
			if m.Learnable(q.Name) != want {
				t.Errorf("%s: %s is trained: %v", name, q.Name, !want)
			}
			if follows := cfg.Momentum.Enabled && !q.Locked; strings.Contains(q.Name, "running_") && q.Momentum != follows {
				t.Errorf("%s: %s has a twin: %v", name, q.Name, q.Momentum)
			}
		}
	}
}

// TestResNetCrops: SwAV reads small views of another size through the same tower, whose running statistics hear of them
// too.
func TestResNetCrops(t *testing.T) {
	sets := append(slices.Clone(narrow), "data.crops.count=3", "data.crops.size=6")
	m := newViewsSystem(t, tinyViews(t, "swav", sets...))
	want := batch.Column{Name: batch.Crops, Shape: []int{3, 3, 6, 6}}
	for _, columns := range [][]batch.Column{m.Columns(), must(Columns(m.cfg))} {
		if got, ok := batch.Find(columns, batch.Crops); !ok || !got.Equal(want) {
			t.Errorf("the step reads %v", columns)
		}
	}
	if n := len(m.step.norms.list); n != 2*20*3 { // of both views and of the crops
		t.Errorf("%d statistics", n)
	}
	b := viewsBatch(3)
	x := batch.New(4, m.Columns()...)
	x.SetFloats(batch.Images, b.Images)
	x.SetFloats(batch.Views, b.Views)
	x.SetInts(batch.IDs, b.IDs)
	crops := x.Floats(batch.Crops)
	for i := range crops {
		crops[i] = b.Images[i%len(b.Images)]
	}
	step := func() float64 {
		return stepOf(t, m, &feed.Step{Batch: x}).Loss
	}
	first := step()
	grads := slices.Clone(m.Params().Grads())
	q, _ := m.Params().Get("image/layer4/01/conv2/weight")
	at, w := m.Params().Offset(q), m.Params().Value(q)
	const h = 1e-2
	w[0] += h
	up := step()
	w[0] -= 2 * h
	down := step()
	if got, want := float64(grads[at]), (up-down)/(2*h); !(math.Abs(got-want) <= .05*math.Abs(want)+2e-3) {
		t.Errorf("gradient %v, finite differences say %v", got, want)
	}
	w[0] += h
	for i := range crops {
		crops[i] = -crops[i]
	}
	if step() == first {
		t.Error("crops change nothing")
	}
}

// must panics with an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestResNetExplains: the score of a pair has a gradient at the places of the last layer, which is the same at each of
// them, since their mean is what a head reads.
func TestResNetExplains(t *testing.T) {
	cfg := check.Get(tinyCLIP("sphere").With(append(slices.Clone(narrow), "model.image.size=24")...))(t)
	m := buildCLIP(t, cfg)
	if m.Explainer().DefaultBlocks().Image != 0 {
		t.Errorf("block %d is looked at", m.Explainer().DefaultBlocks().Image)
	}
	x, one := randomPairs(m, 3), batch.New(1, slices.Concat(m.Image().Columns(), m.Text().Columns())...)
	copy(one.Floats(batch.Images), x.Images)
	copy(one.Ints(batch.Tokens), x.Tokens)
	one.SetInts(batch.Lengths, x.Lengths[:1])
	e := check.Get(m.Explainer().Pair(t.Context(), one, m.Explainer().DefaultBlocks()))(t)
	const places, width = 9, 16
	s := e.Image
	if s.N != places || s.D != width || len(s.Values) != places*width {
		t.Fatalf("%d places of %d channels, %d values", s.N, s.D, len(s.Values))
	}
	for i, g := range s.Grads {
		if g != s.Grads[i%width] {
			t.Fatalf("place %d has another gradient", i/width)
		}
	}
	if slices.Max(s.Grads) <= 0 && slices.Min(s.Grads) >= 0 {
		t.Error("all gradients are 0")
	}
}

// TestResNetComputedAgain: a step that computes its blocks again has the same bits, running statistics included.
func TestResNetComputedAgain(t *testing.T) {
	sets := append(slices.Clone(narrow), "model.image.resnet.shuffle_groups=2")
	plain := newViewsSystem(t, tinyViews(t, "moco", sets...))
	again := newViewsSystem(t, tinyViews(t, "moco", append(sets, "compute.recompute=true")...))
	for seed := range uint64(2) {
		for _, m := range []*Trainer{plain, again} {
			forward(t, m, viewsBatch(seed), Control{UseQueue: true})
			check.OK(t, m.After())
		}
		if !sameBits(plain.params.Grads(), again.params.Grads()) || !sameBits(running(plain), running(again)) {
			t.Fatalf("step %d differs", seed)
		}
	}
	if a, p := again.step.machine.Memory(), plain.step.machine.Memory(); a > p {
		t.Errorf("%d bytes, %d where nothing is computed again", a, p)
	}
}
