package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
)

// tinyHeads is the model of tools/goldens/heads.py.
func tinyHeads() config.Config {
	c := config.Default()
	c.Model.System, c.Momentum.Enabled, c.Queue.Size, c.Objective.Distill.Alpha = "heads", false, 0, 0
	c.Model.Heads = encoders.FeatureHeads{InImage: 6, InText: 4, Layers: 1, Hidden: 10, Activation: "gelu"}
	c.Model.Head.Dim = 3
	c.Objective.ITC.Weight, c.Objective.ITM.Weight, c.Objective.MLM.Weight = 0, 0, 0
	c.Objective.ITC.InBatchWeight, c.Objective.ITC.Temperature = 2, 0.3
	c.Train.BatchSize = 5
	return c
}

func buildHeads(t testing.TB, cfg config.Config) *Trainer {
	t.Helper()
	return modelOn(t, cfg, newEngine(t))
}

// randomFeatures returns a batch of noise.
func randomFeatures(cfg config.Config, seed uint64) Batch {
	r := rand.New(rand.NewPCG(seed, 5))
	b, c := cfg.Train.BatchSize, cfg.Model.Heads
	f := Batch{ImageFeatures: make([]float32, b*c.InImage), TextFeatures: make([]float32, b*c.InText), IDs: iota32(0, b, 1)}
	for _, x := range [][]float32{f.ImageFeatures, f.TextFeatures} {
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
	}
	return f
}

// TestGoldenHeads compares a whole training step with an independent PyTorch
// implementation: the loss to 1e-5, every gradient by name to 1e-4 of its largest
// element, and the features.
func TestGoldenHeads(t *testing.T) {
	deep := encoders.FeatureHeads{InImage: 6, InText: 4, Layers: 3, Hidden: 6, Activation: "silu", Residual: true, LayerNorm: true}
	for mode, change := range map[string]func(c *config.Config){
		"pair": func(*config.Config) {},
		"id":   func(c *config.Config) { c.Objective.ITC.Positives, c.Model.Heads.Activation = "id", "relu" },
		"deep": func(c *config.Config) {
			c.Model.Heads, c.Model.Head = deep, encoders.HeadOptions{Dim: 6, Topology: "Ob(3,2)"}
		},
	} {
		t.Run(mode, func(t *testing.T) {
			g, cfg := openGolden(t, "heads_"+mode), tinyHeads()
			change(&cfg)
			h := buildHeads(t, cfg)
			g.giveAll(h)
			f := g.batch(h)
			res := forward(t, h, f, Control{})
			if len(res.Parts) != 1 || res.Parts[0].Name != "itc_in_batch" {
				t.Fatalf("parts %v, want itc_in_batch alone", res.Parts)
			}
			g.result(h, res)
			if n, want := len(h.params.List()), map[string]int{"pair": 9, "id": 9, "deep": 29}[mode]; n != want {
				t.Errorf("%d parameters, want %d", n, want)
			}
			image := check.Get(h.EncodeFeatures(h.Image(), f.ImageFeatures, 5))(t)
			g.near("image features", image, "expect/image", 1e-5)
			text := check.Get(h.EncodeFeatures(h.Text(), f.TextFeatures, 5))(t)
			g.near("text features", text, "expect/text", 1e-5)
		})
	}
}

// TestHeadsDropout draws other masks at other steps, the same at the same step, and
// none in encoding.
func TestHeadsDropout(t *testing.T) {
	cfg := tinyHeads()
	cfg.Model.Heads.Dropout = 0.5
	h, f := buildHeads(t, cfg), randomFeatures(cfg, 1)
	loss := func(step int) float64 {
		return forward(t, h, f, Control{Step: step}).Loss
	}
	a, b, again := loss(0), loss(1), loss(0)
	if a == b || a != again {
		t.Errorf("losses of steps 0, 1, 0: %v, %v, %v", a, b, again)
	}
	x, err := h.EncodeFeatures(h.Text(), f.TextFeatures, 5)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.Clone(x)
	if x, err = h.EncodeFeatures(h.Text(), f.TextFeatures, 5); err != nil || !slices.Equal(first, x) {
		t.Errorf("encoding is not repeatable (%v)", err)
	}
	one := check.Get(h.EncodeFeatures(h.Text(), f.TextFeatures[:4], 1))(t)
	for i, v := range one {
		if !(math.Abs(float64(v-first[i])) <= 1e-6) {
			t.Errorf("a text alone has %v, in a batch %v", one, first[:3])
			break
		}
	}
}

// TestHeadsLearn overfits five pairs by plain gradient descent.
func TestHeadsLearn(t *testing.T) {
	cfg := tinyHeads()
	h, f := buildHeads(t, cfg), randomFeatures(cfg, 2)
	losses := overfit(t, h, f, 0.05)
	if first, last := losses[0], losses[len(losses)-1]; !(last < 0.2*first) {
		t.Errorf("the loss went from %v to %v", first, last)
	}
	if h.Temperature() == 0.3 {
		t.Error("the temperature was not learned")
	}
	itc := cfg.Objective.ITC
	h.params.Value(h.params.byName[temperatureName])[0] = 9
	if h.ClampTemperature(); h.Temperature() != float64(float32(itc.TemperatureMax)) {
		t.Errorf("temperature %v, want the largest, %v", h.Temperature(), itc.TemperatureMax)
	}
}

func TestHeadsFrozenTemperature(t *testing.T) {
	cfg := tinyHeads()
	cfg.Objective.ITC.LearnTemperature = false
	h := buildHeads(t, cfg)
	if h.Learnable(temperatureName) || !h.Learnable("text_head/fc2/bias") {
		t.Error("the temperature alone must stay as it is")
	}
}

func TestHeadsAllocate(t *testing.T) {
	cfg := tinyHeads()
	cfg.Model.Heads.Dropout = 0.3
	h, f := buildHeads(t, cfg), randomFeatures(cfg, 3)
	s := h.feed(f, Control{Step: 1})
	n := testing.AllocsPerRun(20, func() {
		stepOf(t, h, s)
	})
	if n > 8 { // a random stream and the interfaces of inputs, whatever the sizes
		t.Errorf("a step allocates %v times", n)
	}
}

func TestHeadsErrors(t *testing.T) {
	engine := newEngine(t)
	for want, change := range map[string]func(c *config.Config){
		`there is no model.system "head"`: func(c *config.Config) { c.Model.System = "head" },
		"every objective has weight 0":    func(c *config.Config) { c.Objective.ITC.InBatchWeight = 0 },
	} {
		cfg := tinyHeads()
		change(&cfg)
		check.Fails(newModel(cfg, engine))(t, want)
	}
	cfg := tinyHeads()
	cfg.Objective.ITC.Positives = "id"
	h, f := buildHeads(t, cfg), randomFeatures(cfg, 4)
	for want, change := range map[string]func(f *Batch){
		"feed: image features: got 29 values, want 5 rows of 6": func(f *Batch) { f.ImageFeatures = f.ImageFeatures[1:] },
		"feed: text features: got 0 values, want 5 rows of 4":   func(f *Batch) { f.TextFeatures = nil },
		"feed: ids: got 4 values, want 5 rows of 1":             func(f *Batch) { f.IDs = f.IDs[1:] },
	} {
		bad := f
		change(&bad)
		check.Fails(h.Forward(bad, Control{}))(t, want)
	}
	check.Fails(h.EncodeFeatures(h.Image(), f.ImageFeatures, 4))(t, "image features: got 30 values, want 4 rows of 6")
	if _, err := h.EncodeFeatures(h.Text(), nil, 0); err == nil {
		t.Error("no rows: no error")
	}
}
