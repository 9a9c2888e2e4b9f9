package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// recorded is a pool that remembers which rows were read.
type recorded struct {
	rows [][]float32
	read []int
	fail error
}

func (p *recorded) Rows() int  { return len(p.rows) }
func (p *recorded) Width() int { return len(p.rows[0]) }
func (p *recorded) Row(i int, dst []float32) error {
	p.read = append(p.read, i)
	copy(dst, p.rows[i])
	return p.fail
}

// last returns the last n rows that were read.
func (p *recorded) last(n int) (rows []float32) {
	for _, i := range p.read[len(p.read)-n:] {
		rows = append(rows, p.rows[i]...)
	}
	return rows
}

// klotOptions are an alignment into k channels and pools of n rows, all of noise.
func klotOptions(cfg config.Config, k, n int) Options {
	r := rand.New(rand.NewPCG(11, 1))
	noise := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	pool := func(d int) *recorded {
		p := &recorded{}
		for range n {
			p.rows = append(p.rows, noise(d))
		}
		return p
	}
	h := cfg.Model.Heads
	return Options{
		Reference: &objectives.Reference{
			Image: objectives.Layer{Weight: noise(k * h.InImage), Bias: noise(k)}, Text: objectives.Layer{Weight: noise(k * h.InText), Bias: noise(k)},
		},
		ImagePool: pool(h.InImage), TextPool: pool(h.InText),
	}
}

// tinyKLOT are heads with the loss alone, at an eps at which plans converge in few rounds.
func tinyKLOT() config.Config {
	cfg := tinyHeads()
	cfg.Objective.ITC.InBatchWeight = 0
	cfg.Objective.KLOT = objectives.KLOT{Weighted: section.Weigh(2), Reference: "cca", Epsilon: .4, TargetEpsilon: .3, Iterations: 1000, Rows: 3}
	return cfg
}

func buildKLOT(t *testing.T, cfg config.Config, o Options) *Trainer {
	t.Helper()
	o.Engine = newEngine(t)
	return newTrainer(t, cfg, o)
}

// aligned is a layer over rows, to unit length.
func aligned(l objectives.Layer, rows []float32) (out []float64) {
	k := len(l.Bias)
	d := len(l.Weight) / k
	for i := range len(rows) / d {
		y, sq := make([]float64, k), 0.
		for c := range k {
			y[c] = float64(l.Bias[c])
			for j, v := range rows[i*d:][:d] {
				y[c] += float64(l.Weight[c*d+j]) * float64(v)
			}
			sq += y[c] * y[c]
		}
		for _, v := range y {
			out = append(out, v/math.Sqrt(sq))
		}
	}
	return out
}

// naivePlan is the plan of the products of rows x and y (n, c) over eps.
func naivePlan(x, y []float64, n int, eps float64) []float64 {
	c, p := len(x)/n, make([]float64, n*n)
	for i := range p {
		var s float64
		for k := range c {
			s += x[i/n*c+k] * y[i%n*c+k]
		}
		p[i] = math.Exp(s / eps)
	}
	for range 5000 {
		for _, by := range []func(i, j int) int{func(i, j int) int { return i*n + j }, func(i, j int) int { return j*n + i }} {
			for i := range n {
				var sum float64
				for j := range n {
					sum += p[by(i, j)]
				}
				for j := range n {
					p[by(i, j)] /= sum * float64(n)
				}
			}
		}
	}
	return p
}

// TestKLOT compares the loss with its definition over the features that the model gives,
// those of the rows of the pools included.
func TestKLOT(t *testing.T) {
	for _, further := range []int{0, 3} {
		cfg := tinyKLOT()
		cfg.Objective.KLOT.Rows = further
		o := klotOptions(cfg, 4, 7)
		m := buildKLOT(t, cfg, o)
		b := randomFeatures(cfg, 3)
		r := forward(t, m, b, Control{})
		images, texts := b.ImageFeatures, b.TextFeatures
		if further > 0 {
			images = slices.Concat(images, o.ImagePool.(*recorded).last(further))
			texts = slices.Concat(texts, o.TextPool.(*recorded).last(further))
		}
		n := cfg.Train.BatchSize + further
		encode := func(e *Encoder, rows []float32) []float64 {
			x := check.Get(m.EncodeFeatures(e, rows, n))(t)
			wide := make([]float64, len(x))
			for i, v := range x {
				wide[i] = float64(v)
			}
			return wide
		}
		target := naivePlan(aligned(o.Reference.Image, images), aligned(o.Reference.Text, texts), n, .3)
		var want float64
		for i, v := range naivePlan(encode(m.Image(), images), encode(m.Text(), texts), n, .4) {
			want += target[i] * math.Log(target[i]/v)
		}
		if p := r.Parts[0]; p.Name != "klot" || !(math.Abs(p.Value-want) <= 1e-4*want) || !(math.Abs(r.Loss-2*p.Value) <= 1e-5) {
			t.Errorf("%d further rows: %v of %v, want klot %v", further, r.Parts, r.Loss, want)
		}
		if p := r.Parts[1]; p.Name != "klot_off" || !p.Measure || p.Value > 1e-4 {
			t.Errorf("plan: %v", p)
		}
	}
}

// TestKLOTGradients: those of both heads, from the batch and the rows of the pools, are those
// of finite differences.
func TestKLOTGradients(t *testing.T) {
	cfg := tinyKLOT()
	m := buildKLOT(t, cfg, klotOptions(cfg, 4, 7))
	b := randomFeatures(cfg, 3)
	checkDifferences(t, m, func(float64) float64 {
		r := forward(t, m, b, Control{})
		return 2 * r.Parts[0].Value
	}, []string{"image_head/fc1/weight", "image_head/fc2/weight", "text_head/fc2/bias"})
}

// TestKLOTDraws: unpaired rows depend on the seed and the step alone, and those of the sides
// are drawn apart.
func TestKLOTDraws(t *testing.T) {
	cfg := tinyKLOT()
	draw := func(seed uint64, step int) (images, texts []int) {
		cfg.Run.Seed = seed
		o := klotOptions(cfg, 4, 1000)
		m := buildKLOT(t, cfg, o)
		forward(t, m, randomFeatures(cfg, 3), Control{Step: step})
		return o.ImagePool.(*recorded).read, o.TextPool.(*recorded).read
	}
	images, texts := draw(1, 5)
	if again, _ := draw(1, 5); !slices.Equal(images, again) || len(images) != 3 {
		t.Errorf("rows %v, then %v", images, again)
	}
	later, _ := draw(1, 6)
	other, _ := draw(2, 5)
	if slices.Equal(images, later) || slices.Equal(images, other) || slices.Equal(images, texts) {
		t.Errorf("rows %v, of the next step %v, of another seed %v, of texts %v", images, later, other, texts)
	}
}

func TestKLOTErrors(t *testing.T) {
	cfg := tinyKLOT()
	for want, change := range map[string]func(o *Options){
		"model.Options.Reference":              func(o *Options) { o.Reference = nil },
		"model.Options.ImagePool":              func(o *Options) { o.TextPool = nil },
		"weight (K, 6) and a bias (K) (got 20": func(o *Options) { o.Reference.Image.Weight = o.Reference.Image.Weight[:20] },
	} {
		o := klotOptions(cfg, 4, 7)
		o.Engine = newEngine(t)
		change(&o)
		check.Fails(New(cfg, o))(t, want)
	}
	o := klotOptions(cfg, 4, 7)
	m := buildKLOT(t, cfg, o)
	o.TextPool.(*recorded).fail = errors.New("bad row")
	check.Fails(m.Forward(randomFeatures(cfg, 3), Control{}))(t, "unpaired texts: row")
}
