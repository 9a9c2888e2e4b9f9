package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// tinyViews is a small configuration of a system of images alone, with a queue that is
// full after four batches of 4.
func tinyViews(t testing.TB, system string, sets ...string) config.Config {
	t.Helper()
	return check.Get(config.Load("", append([]string{
		"model.system=" + system, "data.views=2", "model.image.size=8", "model.image.patch=4", "model.image.depth=2",
		"model.image.width=16", "model.image.heads=2", "model.head.dim=6", "model.views.hidden=12",
		"momentum.enabled=" + map[string]string{"moco": "true", "swav": "false"}[system],
		"objective.itm.weight=0", "objective.mlm.weight=0", "objective.distill.alpha=0", "objective.distill.ramp_epochs=0",
		"objective.itc.temperature=0.2", "objective.itc.learn_temperature=false",
		"objective.swav.prototypes=7", "objective.geodesic.layers=[3]", "objective.geodesic.neighbours=2", "objective.geodesic.period_steps=3",
		"queue.size=16", "train.batch_size=4", "run.seed=3",
	}, sets...)))(t)
}

// newViewsSystem builds a system of images alone.
func newViewsSystem(t testing.TB, cfg config.Config) *Trainer {
	t.Helper()
	e := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: 2}))(t)
	t.Cleanup(e.Close)
	giveDevice(t, e)
	m := newTrainer(t, cfg, Options{Engine: e})
	t.Cleanup(func() { m.Close() })
	return m
}

// viewsBatch is a batch of 4 random images with a second view near the first.
func viewsBatch(seed uint64) Batch { return viewsOfSize(seed, 8) }

// viewsOfSize is viewsBatch for images of so many pixels in each direction.
func viewsOfSize(seed uint64, size int) Batch {
	r := rand.New(rand.NewPCG(seed, 1))
	b := Batch{Images: make([]float32, 4*3*size*size), Views: make([]float32, 4*3*size*size), IDs: []int32{0, 1, 2, 3}}
	for i := range b.Images {
		b.Images[i] = float32(r.NormFloat64())
		b.Views[i] = b.Images[i] + .3*float32(r.NormFloat64())
	}
	return b
}

// descend makes a training step with plain gradient descent.
func descend(t testing.TB, m *Trainer, step int, useQueue bool) *Result {
	t.Helper()
	check.OK(t, m.Before(step))
	b := viewsOfSize(uint64(step), m.cfg.Model.Image.Size)
	r := forward(t, m, b, Control{Step: step, UseQueue: useQueue})
	p := m.Params()
	for i, g := range p.Grads() {
		p.Values()[i] -= .05 * g
	}
	p.MomentumRuns(func(offset int, twin []float32) {
		for i := range twin {
			twin[i] += .1 * (p.Values()[offset+i] - twin[i])
		}
	})
	check.OK(t, m.After())
	return r
}

// TestViewsGradients: gradients of every parameter against finite differences in the
// whole step, the queue in part full. The score is the cosine, whose gradient is that of
// the loss; geodesic ones are tested with their op.
func TestViewsGradients(t *testing.T) {
	for _, c := range []struct {
		system string
		sets   []string
	}{
		{"moco", []string{"objective.itc.in_batch_weight=0.5", "objective.itc.learn_temperature=true"}},
		{"moco", []string{"queue.size=0"}},
		{"swav", []string{"objective.itc.learn_temperature=true", "objective.swav.epsilon=1e6"}}, // constant codes: no gradient flows through codes
		{"swav", []string{"queue.size=0", "objective.swav.epsilon=1e6"}},
	} {
		m := newViewsSystem(t, tinyViews(t, c.system, c.sets...))
		for step := range 3 {
			if m.Queue() != nil {
				descend(t, m, step, true)
			}
		}
		check.OK(t, m.Before(3))
		b := viewsBatch(77)
		loss := func() float64 {
			r := forward(t, m, b, Control{UseQueue: true})
			var s float64
			for _, p := range r.Parts {
				switch p.Name {
				case "itc", "swav":
					s += p.Value
				case "itc_in_batch":
					s += .5 * p.Value
				}
			}
			return s
		}
		for _, q := range m.Params().List() {
			if !m.Learnable(q.Name) {
				if q.Name != temperatureName {
					t.Errorf("%s: %s is not trained", c.system, q.Name)
				}
				continue
			}
			loss()
			g, x := slices.Clone(m.Params().Grad(q)), m.Params().Value(q)
			largest, at := 0.0, 0
			for i, v := range g {
				if a := math.Abs(float64(v)); a > largest {
					largest, at = a, i
				}
			}
			const h = 2e-4 // small, since ReLU has kinks
			old := x[at]
			f := func(d float32) float64 {
				x[at] = old + d
				defer func() { x[at] = old }()
				return loss()
			}
			want := (f(h) - f(-h)) / (2 * h)
			if got := float64(g[at]); !(math.Abs(got-want) <= .02*largest+2e-3) {
				t.Errorf("%s %v: gradient of %s[%d] is %v, finite differences say %v", c.system, c.sets, q.Name, at, got, want)
			}
		}
	}
}

// TestViewsQueue: features enter the queue with the update, in order; a graph is built
// when it is full; and every score trains.
func TestViewsQueue(t *testing.T) {
	for _, system := range []string{"moco", "swav"} {
		for _, score := range []string{"cosine", "geodesic"} {
			m := newViewsSystem(t, tinyViews(t, system, "objective.itc.score="+score))
			q := m.Queue()
			if q.Text != nil || q.Filled != 0 {
				t.Fatalf("%s: a queue of texts, or a full one", system)
			}
			for step := range 12 {
				r := descend(t, m, step, true)
				if math.IsNaN(r.Loss) || r.Loss <= 0 {
					t.Fatalf("%s %s: loss %v at step %d", system, score, r.Loss, step)
				}
				k, err := m.Features()
				image := k.Image
				if err != nil || k.Text != nil || len(image) != 4*6 {
					t.Fatalf("%d features, %v", len(image), err)
				}
				if row := step * 4 % 16; !slices.Equal(image, q.Image[row*6:][:4*6]) {
					t.Fatalf("%s %s: step %d is not at row %d", system, score, step, row)
				}
				if score == "geodesic" && (m.Graphs().Image.Used > 0) != (step >= 4) {
					t.Errorf("%s: %d centres at step %d", system, m.Graphs().Image.Used, step)
				}
			}
			var losses []float64 // of one batch, by gradient descent
			for range 40 {
				check.OK(t, m.Before(12))
				r := forward(t, m, viewsBatch(3), Control{UseQueue: true})
				losses = append(losses, r.Loss)
				for i, g := range m.Params().Grads() {
					m.Params().Values()[i] -= .05 * g
				}
			}
			if losses[39] > losses[0]-.02 {
				t.Errorf("%s %s: the loss goes from %v to %v", system, score, losses[0], losses[39])
			}
		}
	}
}

// TestViewsWithoutQueue: before queue.start_steps the loss knows the batch alone, so
// that the queue's content does not matter.
func TestViewsWithoutQueue(t *testing.T) {
	for _, system := range []string{"moco", "swav"} {
		m := newViewsSystem(t, tinyViews(t, system))
		for step := range 5 {
			descend(t, m, step, false)
		}
		loss := func(use bool) float64 {
			return forward(t, m, viewsBatch(50), Control{UseQueue: use}).Loss
		}
		without, with := loss(false), loss(true)
		for i := range m.Queue().Image {
			m.Queue().Image[i] = -m.Queue().Image[i]
		}
		if loss(false) != without {
			t.Errorf("%s: the queue is read before its time", system)
		}
		if loss(true) == with {
			t.Errorf("%s: the queue is never read", system)
		}
	}
}

// TestPrototypes: unit rows at every step, and nothing but their length changes while
// they are frozen.
func TestPrototypes(t *testing.T) {
	m := newViewsSystem(t, tinyViews(t, "swav", "objective.swav.freeze_steps=2"))
	q, ok := m.Params().Get(prototypesName)
	if !ok {
		t.Fatal("no prototypes")
	}
	start := slices.Clone(m.Params().Value(q))
	for step := range 4 {
		check.OK(t, m.Before(step))
		x := m.Params().Value(q)
		for i := 0; i < len(x); i += 6 {
			if s := vector.SumSq(x[i:][:6]); !(math.Abs(s-1) <= 1e-5) {
				t.Errorf("step %d: prototype of length %v", step, math.Sqrt(s))
			}
		}
		if step <= 2 && !sameRows(x, start) {
			t.Errorf("frozen prototypes changed before step %d", step)
		}
		if step == 3 && sameRows(x, start) {
			t.Error("the prototypes never change")
		}
		descend(t, m, step, false)
	}
}

// sameRows says whether two slices differ by rounding alone.
func sameRows(a, b []float32) bool {
	for i := range a {
		if math.Abs(float64(a[i]-b[i])) > 1e-6 {
			return false
		}
	}
	return true
}

// TestViewsEncodeImages: the class token is the first of the states, and features are unit
// rows that do not depend on the batch around an image.
func TestViewsEncodeImages(t *testing.T) {
	m := newViewsSystem(t, tinyViews(t, "moco"))
	b := viewsBatch(9)
	states, features, err := m.EncodeImages(b.Images, 4)
	if err != nil || len(states) != 4*5*16 || len(features) != 4*6 {
		t.Fatalf("%d states, %d features, %v", len(states), len(features), err)
	}
	third := slices.Clone(features[2*6:][:6])
	if s := vector.SumSq(third); !(math.Abs(s-1) <= 1e-5) {
		t.Errorf("a feature of length %v", math.Sqrt(s))
	}
	_, one := encodeImages(t, m, b.Images[2*192:][:192], 1)
	for i := range one {
		if !(math.Abs(float64(one[i]-third[i])) <= 1e-5) {
			t.Errorf("channel %d is %v alone and %v in a batch", i, one[i], third[i])
		}
	}
}

func TestViewsMisuse(t *testing.T) {
	for _, system := range []string{"moco", "swav"} {
		m := newViewsSystem(t, tinyViews(t, system))
		b := viewsBatch(1)
		b.Views = nil
		if _, err := m.Forward(b, Control{}); err == nil || !strings.Contains(err.Error(), "feed: images/2: got 0 values") {
			t.Errorf("%s: no second view: %v", system, err)
		}
		tower := m.design.image.tower
		if _, err := New(m.cfg, Options{Engine: m.engine, Image: tower}); err == nil || !strings.Contains(err.Error(), "takes no towers of its own") {
			t.Errorf("%s: another tower: %v", system, err)
		}
	}
}
