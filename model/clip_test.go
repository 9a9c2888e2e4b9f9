package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// tinyCLIP is the model of tools/goldens/clip.py in a space.
func tinyCLIP(topology string) config.Config {
	c := config.Default()
	c.Model.System, c.Momentum.Enabled, c.Queue.Size, c.Objective.Distill.Alpha = "clip", false, 0, 0
	c.Model.Image = encoders.ImageOptions{Size: 16, Patch: 8, Depth: 2, Width: 16, Heads: 2}
	c.Model.Text = encoders.TextOptions{Layers: 2, Width: 24, Heads: 2, Positions: 10}
	c.Model.Head.Dim, c.Model.Head.Topology = 8, topology
	o := &c.Objective
	o.ITC.Weight, o.ITM.Weight, o.MLM.Weight, o.ITC.InBatchWeight = 0, 0, 0, 1
	o.ITC.Temperature, o.ITC.TemperatureMax, o.ITC.TemperatureMin, o.ITC.LogTemperature = 0.3, 1, 0, true
	c.Train.BatchSize, c.Data.Tokens = 5, 6
	if topology == "euclid" {
		o.ITC.Score = "l2"
	}
	return c
}

func buildCLIP(t testing.TB, cfg config.Config) *Trainer {
	t.Helper()
	return modelOn(t, cfg, newEngine(t))
}

// randomPairs is a batch of noise and texts of at least two tokens.
func randomPairs(m *Trainer, seed uint64) Batch {
	r := rand.New(rand.NewPCG(seed, 9))
	b, l := m.cfg.Train.BatchSize, m.cfg.Data.Tokens
	x := Batch{Images: make([]float32, b*3*m.cfg.Model.Image.Size*m.cfg.Model.Image.Size), Tokens: make([]int32, b*l), Lengths: make([]int32, b), IDs: iota32(0, b, 1)}
	for i := range x.Images {
		x.Images[i] = float32(r.NormFloat64())
	}
	for i := range b {
		x.Lengths[i] = int32(2 + r.IntN(l-1))
		for k := range int(x.Lengths[i]) {
			x.Tokens[i*l+k] = int32(5 + r.IntN(m.Vocab()-5))
		}
		x.Tokens[i*l] = 2
	}
	return x
}

// TestGoldenCLIP compares a whole training step with an independent PyTorch model: the
// loss to 1e-5, every gradient by name to 1e-4 of its largest element, and the features.
func TestGoldenCLIP(t *testing.T) {
	for mode, topology := range map[string]string{"multi": "Multi(2,4)", "oblique": "Ob(4,2)", "sphere": "sphere", "euclid": "euclid"} {
		t.Run(mode, func(t *testing.T) {
			g, cfg := openGolden(t, "clip_"+mode), tinyCLIP(topology)
			if mode == "oblique" {
				cfg.Objective.ITC.Positives = "id"
			}
			m := buildCLIP(t, cfg)
			g.giveAll(m)
			b := g.batch(m)
			res := forward(t, m, b, Control{})
			if len(res.Parts) != 1 || res.Parts[0].Name != "itc_in_batch" || res.Parts[0].Value != res.Loss {
				t.Errorf("parts %v of the loss %v, want itc_in_batch alone", res.Parts, res.Loss)
			}
			g.value("loss", res.Loss)
			g.gradients(m)
			_, image := encodeImages(t, m, b.Images, 5)
			_, text := encodeTexts(t, m, b.Tokens, b.Lengths, 5)
			g.near("image features", image, "expect/image", 1e-5)
			g.near("text features", text, "expect/text", 1e-5)
		})
	}
}

// TestCLIPLearns overfits one batch in every space by plain gradient descent, with the
// further class tokens in the last block of each tower alone, and with the temperature
// that is divided by.
func TestCLIPLearns(t *testing.T) {
	for name, change := range map[string]func(c *config.Config){
		"Multi(2,4)":                   func(*config.Config) {},
		"Multi(2,4) in the last block": func(c *config.Config) { c.Model.Head.Topology, c.Model.Head.TokenBlocks = "Multi(2,4)", 1 },
		"Ob(2,4)":                      func(*config.Config) {},
		"sphere":                       func(*config.Config) {},
		"plain temperature": func(c *config.Config) {
			c.Model.Head.Topology, c.Objective.ITC.LogTemperature, c.Objective.ITC.TemperatureMin = "sphere", false, 0.01
		},
		"dropout": func(c *config.Config) { c.Model.Head.Topology, c.Model.Text.Dropout = "sphere", 0.1 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tinyCLIP(name)
			change(&cfg)
			m := buildCLIP(t, cfg)
			losses := overfit(t, m, randomPairs(m, 3), 0.02)
			if first, last := losses[0], losses[len(losses)-1]; !(last < 0.5*first) {
				t.Errorf("the loss went from %v to %v", first, last)
			}
		})
	}
}

// TestCLIPTemperature: it is that of the configuration at first, and the scale is capped
// at 100/m.
func TestCLIPTemperature(t *testing.T) {
	for topology, least := range map[string]float64{"sphere": .01, "Multi(2,4)": .04} {
		m := buildCLIP(t, tinyCLIP(topology))
		if got := m.Temperature(); !(math.Abs(got-.3) <= 1e-6) {
			t.Errorf("%s: temperature %v, want 0.3", topology, got)
		}
		q, ok := m.params.Get(logScaleName)
		if !ok {
			t.Fatalf("%s: no parameter %s", topology, logScaleName)
		}
		m.params.Value(q)[0] = 9
		if m.ClampTemperature(); !(math.Abs(m.Temperature()-least) <= 1e-6) {
			t.Errorf("%s: temperature %v, want the least, %v", topology, m.Temperature(), least)
		}
	}
	cfg := tinyCLIP("sphere")
	if m := buildCLIP(t, cfg); !m.Learnable(logScaleName) || !m.Learnable("text_proj/weight") {
		t.Error("temperature and projection must be learned")
	}
	cfg.Objective.ITC.LearnTemperature = false
	if m := buildCLIP(t, cfg); m.Learnable(logScaleName) || !m.Learnable("text_proj/weight") {
		t.Error("the temperature alone must stay as it is")
	}
}

// TestCLIPEncodes: an item alone has the features that it has in a batch, and words
// beyond a text's length do not matter.
func TestCLIPEncodes(t *testing.T) {
	cfg := tinyCLIP("Multi(2,4)")
	cfg.Model.Head.TokenBlocks = 1
	m := buildCLIP(t, cfg)
	b := randomPairs(m, 4)
	states, image := encodeImages(t, m, b.Images, 5)
	if len(states) != 5*m.Image().Len()*m.Image().Width() || len(image) != 5*m.Dim() {
		t.Errorf("%d states and %d features", len(states), len(image))
	}
	all := slices.Clone(image)
	_, image = encodeImages(t, m, b.Images[len(b.Images)/5:][:len(b.Images)/5], 1)
	near(t, "an image alone", image, all[8:16], 1e-5)
	states, text := encodeTexts(t, m, b.Tokens, b.Lengths, 5)
	if len(states) != 5*m.Text().Len()*m.Text().Width() || len(text) != 5*m.Dim() {
		t.Errorf("%d states and %d features", len(states), len(text))
	}
	all = slices.Clone(text)
	for i, n := range b.Lengths {
		for k := int(n); k < 6; k++ {
			b.Tokens[i*6+k] = 11
		}
	}
	if _, text, err := m.EncodeTexts(b.Tokens, b.Lengths, 5); err != nil || !slices.Equal(text, all) {
		t.Errorf("padding changes features (%v)", err)
	}
	if m.Matcher() != nil {
		t.Error("a dual encoder has no match head")
	}
	if m.Queue() != nil || m.Graphs() != nil || m.Before(3) != nil || m.Close() != nil {
		t.Error("there is neither queue nor graph")
	}
}

// TestCLIPSteadyState: a step allocates a few words for its interfaces, whatever the sizes.
func TestCLIPSteadyState(t *testing.T) {
	cfg := tinyCLIP("Multi(2,4)")
	cfg.Model.Text.Dropout, cfg.Model.Head.TokenBlocks = 0.1, 1
	m := buildCLIP(t, cfg)
	b := randomPairs(m, 5)
	s := m.feed(b, Control{Step: 1})
	n := testing.AllocsPerRun(20, func() {
		stepOf(t, m, s)
	})
	if n > 12 {
		t.Errorf("a step allocates %v times", n)
	}
	if f := m.Footprint(); f.Buffers == 0 || f.Parameters != 4*int64(m.params.Count()) || f.Momentum != 0 {
		t.Errorf("footprint %+v", f)
	}
}

// TestCLIPRecompute: computing the blocks again keeps every bit and takes less memory, also
// where class tokens join between two blocks.
func TestCLIPRecompute(t *testing.T) {
	cfg := tinyCLIP("Multi(2,4)")
	cfg.Model.Image.Depth, cfg.Model.Text.Layers, cfg.Model.Head.TokenBlocks = 4, 4, 2
	kept := buildCLIP(t, cfg)
	cfg.Compute.Recompute = true
	again := buildCLIP(t, cfg)
	b := randomPairs(kept, 7)
	for _, m := range []*Trainer{kept, again} {
		forward(t, m, b, Control{})
	}
	if !sameBits(kept.params.Grads(), again.params.Grads()) {
		t.Error("gradients differ")
	}
	if a, b := again.Machine().Memory(), kept.Machine().Memory(); a >= b*9/10 {
		t.Errorf("buffers take %d bytes, %d without computing again", a, b)
	}
}

// TestCLIPBF16: products in bfloat16 change the loss by less than 1 % and the gradient by
// little in its direction.
func TestCLIPBF16(t *testing.T) {
	cfg := tinyCLIP("Multi(2,4)")
	cfg.Model.Head.TokenBlocks = 1
	full := buildCLIP(t, cfg)
	e := engineOf(t, kernel.Options{Threads: 2, Precision: "bf16"})
	half := modelOn(t, cfg, e)
	b := randomPairs(full, 8)
	var loss [2]float64
	for i, m := range []*Trainer{full, half} {
		res := forward(t, m, b, Control{})
		loss[i] = res.Loss
	}
	if d := math.Abs(loss[1]/loss[0] - 1); !(d < 0.01) || d == 0 {
		t.Errorf("loss %v, float32 %v", loss[1], loss[0])
	}
	x, y := full.params.Grads(), half.params.Grads()
	if cosine := vector.Dot(x, y) / float32(math.Sqrt(vector.SumSq(x)*vector.SumSq(y))); !(cosine > 0.999) {
		t.Errorf("cosine of the gradients %v", cosine)
	}
}

func TestCLIPErrors(t *testing.T) {
	engine := newEngine(t)
	for want, change := range map[string]func(c *config.Config){
		`there is no model.system "clop"`:    func(c *config.Config) { c.Model.System = "clop" },
		"model.head.topology has 3 x 4 = 12": func(c *config.Config) { c.Model.Head.Topology = "Multi(3,4)" },
	} {
		cfg := tinyCLIP("sphere")
		change(&cfg)
		check.Fails(newModel(cfg, engine))(t, want)
	}
	cfg := tinyCLIP("sphere")
	cfg.Objective.ITC.Positives = "id"
	m := buildCLIP(t, cfg)
	good := randomPairs(m, 6)
	for want, change := range map[string]func(b *Batch){
		"feed: images: got 3839 values, want 5 rows of 768": func(b *Batch) { b.Images = b.Images[1:] },
		"feed: tokens: got 29 values, want 5 rows of 6":     func(b *Batch) { b.Tokens = b.Tokens[1:] },
		"feed: lengths: got 4 values, want 5 rows of 1":     func(b *Batch) { b.Lengths = b.Lengths[1:] },
		"feed: ids: got 0 values, want 5 rows of 1":         func(b *Batch) { b.IDs = nil },
	} {
		b := good
		change(&b)
		check.Fails(m.Forward(b, Control{}))(t, want)
	}
	if _, _, err := m.EncodeImages(good.Images, 4); err == nil {
		t.Error("images of another number: no error")
	}
	if _, _, err := m.EncodeTexts(good.Tokens, good.Lengths[1:], 5); err == nil {
		t.Error("lengths of another number: no error")
	}
}
