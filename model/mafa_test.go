package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/train/optim"
)

// mafaConfig is tinyConfig with relabelling.
func mafaConfig() config.Config {
	cfg := tinyConfig()
	cfg.Objective.MAFA = objectives.MAFA{Connector: "somewhere", PositiveAbove: .8, NegativeBelow: .5}
	return cfg
}

// connectorOf returns a model as a connector.
func connectorOf(m *Trainer) *Connector {
	return &Connector{Model: m.cfg.Model, Vocab: m.Vocab(), From: &memorySource{p: m.params}}
}

// connected builds a model with a connector.
func connected(t testing.TB, cfg config.Config, c *Connector) *Trainer {
	t.Helper()
	return check.Get(newConnected(cfg, newEngine(t), c))(t)
}

// otherModel is a connector of other widths and depths, with weights large enough that its
// opinions differ.
func otherModel(t testing.TB) *Trainer {
	cfg := tinyConfig()
	cfg.Run.Seed = 5
	cfg.Model.Image = encoders.ImageOptions{Size: 16, Patch: 4, Depth: 1, Width: 24, Heads: 3}
	cfg.Model.Text = encoders.TextOptions{Layers: 1, FusionLayers: 1, Width: 16, Heads: 2, Positions: 6}
	cfg.Momentum.Enabled, cfg.Queue.Size, cfg.Objective.ITC.Weight = false, 0, 0
	m := build(t, cfg, "builtin", 2)
	r := rand.New(rand.NewPCG(2, 3))
	for _, q := range m.params.List() {
		for i, v := range m.params.Value(q) {
			scale := float32(1)
			if q.Name == "itm_head/weight" {
				scale = 6
			}
			m.params.Value(q)[i] = scale * (v + .4*float32(r.NormFloat64()))
		}
	}
	return m
}

// TestRelabellingByInference compares the counts of a step, and the contrast with further
// positives and a uniform share, with what encoding and matching say pair by pair.
func TestRelabellingByInference(t *testing.T) {
	judge := otherModel(t)
	cfg := mafaConfig()
	cfg.Train.BatchSize = 6
	cfg.Momentum.Enabled, cfg.Queue.Size, cfg.Objective.Distill.Alpha = false, 0, 0
	cfg.Objective.ITC.Weight = 0 // which needs the teacher
	cfg.Objective.ITC.InBatchWeight, cfg.Objective.ITC.Temperature = 1, .3
	cfg.Objective.MAFA.Uniform = .5
	m := connected(t, cfg, connectorOf(judge))
	const n = 6
	var total [2]float64
	for seed := range uint64(8) {
		b := randomBatch(m, seed)
		const uniform = .25
		res := forward(t, m, b, Control{Uniform: uniform})
		got := partsOf(res)
		_, image := encodeImages(t, m, b.Images, n)
		_, text := encodeTexts(t, m, b.Tokens, b.Lengths, n)
		match := matches(t, judge, b, n)
		var positives, replaced, loss float64
		for side := range 2 {
			f, g := image, text
			if side == 1 {
				f, g = text, image
			}
			for i := range n {
				s := make([]float64, n)
				hardest := -1
				for j := range n {
					for k := range m.Dim() {
						s[j] += float64(f[i*m.Dim()+k]) * float64(g[j*m.Dim()+k]) / .3
					}
				}
				for j := range n {
					if j != i && (hardest < 0 || s[j] > s[hardest]) {
						hardest = j
					}
				}
				p := match[hardest*n+i] // text hardest, image i
				if side == 1 {
					p = match[i*n+hardest]
				}
				y := make([]float64, n)
				y[i] = 1
				switch {
				case p > .8:
					positives++
					y[i], y[hardest] = .5, .5
				case p >= .5:
					replaced++
				}
				var z float64
				for _, v := range s {
					z += math.Exp(v)
				}
				for j := range n {
					loss -= ((1-uniform)*y[j] + uniform/n) * (s[j] - math.Log(z)) / n / 2
				}
			}
		}
		if got["mafa_positives"] != positives || got["mafa_replaced"] != replaced {
			t.Errorf("seed %d: %v positives and %v replaced, want %v and %v", seed, got["mafa_positives"], got["mafa_replaced"], positives, replaced)
		}
		if d := math.Abs(got["itc_in_batch"] - loss); d > 1e-5*loss {
			t.Errorf("seed %d: contrast %v, want %v", seed, got["itc_in_batch"], loss)
		}
		total[0] += positives
		total[1] += replaced
	}
	if total[0] == 0 || total[1] == 0 {
		t.Errorf("%v positives and %v replaced in all: the test shows nothing", total[0], total[1])
	}
}

// matches returns the probability that text i and image j match, (n, n).
func matches(t testing.TB, m *Trainer, b Batch, n int) []float64 {
	t.Helper()
	images, _ := encodeImages(t, m, b.Images, n)
	images = slices.Clone(images)
	texts, _ := encodeTexts(t, m, b.Tokens, b.Lengths, n)
	out := make([]float64, n*n)
	for j := range n {
		index := slices.Repeat([]int32{int32(j)}, n)
		a := check.Get(m.Matcher().Match(t.Context(), texts, b.Lengths, index, images, n, n))(t)
		for i := range n {
			out[i*n+j] = 1 / (1 + math.Exp(float64(a[2*i]-a[2*i+1])))
		}
	}
	return out
}

// pairsOfClasses is a batch whose image and caption i show class of[i]: one colour and one
// word, with noise.
func pairsOfClasses(m *Trainer, of []int, seed uint64) Batch {
	r := rand.New(rand.NewPCG(seed, 4))
	l, size := m.cfg.Data.Tokens, m.cfg.Model.Image.Size
	b := Batch{Masked: make([]int32, len(of)*l), MaskPlaces: make([]int32, m.MaskRows()), MaskLabels: slices.Repeat([]int32{-100}, m.MaskRows())}
	for i, class := range of {
		for c := range 3 {
			level := float32(class>>c&1)*4 - 2
			for range size * size {
				b.Images = append(b.Images, level+.1*float32(r.NormFloat64()))
			}
		}
		ids := make([]int32, l)
		ids[0], ids[1] = 2, int32(10+class)
		b.Tokens = append(b.Tokens, ids...)
		b.Lengths, b.IDs = append(b.Lengths, 2), append(b.IDs, int32(i))
	}
	return b
}

// TestFindsFalseNegatives trains a connector by plain matching until it tells 8 classes
// apart, and then wants a batch in which captions are duplicated to have all its false
// negatives found, and a batch without any to have none.
func TestFindsFalseNegatives(t *testing.T) {
	cfg := tinyConfig()
	cfg.Train.BatchSize = 8
	cfg.Objective.MLM.Weight = 0
	cfg.Momentum.Enabled, cfg.Queue.Size, cfg.Objective.Distill.Alpha = false, 0, 0
	cfg.Objective.ITC.Weight = 0 // which needs the teacher
	judge := build(t, cfg, "", 2)
	distinct := []int{0, 1, 2, 3, 4, 5, 6, 7}
	p := judge.params
	adam, err := optim.New(judge.engine, p.Values(), p.Grads(), []optim.Segment{{Name: "all", Len: p.Count()}}, optim.Settings{Beta1: .9, Beta2: .98, Eps: 1e-8})
	if err != nil {
		t.Fatal(err)
	}
	accuracy := 0.
	for i := range 600 {
		res := forward(t, judge, pairsOfClasses(judge, distinct, uint64(i)), Control{Step: i})
		adam.Step(3e-3, 1, adam.GradNorm(1))
		judge.ClampTemperature()
		for _, p := range res.Parts {
			if p.Name == "itm_accuracy" {
				accuracy = .9*accuracy + .1*p.Value
			}
		}
		if accuracy > .995 {
			t.Logf("the connector matches after %d steps", i)
			break
		}
	}
	if accuracy < .9 {
		t.Fatalf("the connector did not learn to match: accuracy %v", accuracy)
	}
	cfg.Objective.MAFA = objectives.MAFA{Connector: "somewhere", PositiveAbove: .8, NegativeBelow: .5}
	m := connected(t, cfg, connectorOf(judge))
	// The student is the connector's copy, so that a duplicate is the hardest negative.
	copy(m.params.Values(), judge.params.Values())
	positives := func(of []int) float64 {
		res := forward(t, m, pairsOfClasses(m, of, 1000), Control{})
		for _, p := range res.Parts {
			if p.Name == "mafa_positives" {
				return p.Value
			}
		}
		t.Fatal("no mafa_positives among the parts")
		return 0
	}
	if got := positives(distinct); got > 0 {
		t.Errorf("%v false negatives found where there are none", got)
	}
	// 0 and 3 come twice: four rows of each direction have a false negative.
	if got := positives([]int{0, 1, 2, 3, 0, 3, 6, 7}); got != 8 {
		t.Errorf("%v of 8 false negatives found", got)
	}
}

// TestRelabelledRowsInThePool: where the columns are a queue that the batch has entered,
// the step runs and counts as without a graph.
func TestRelabelledRowsInThePool(t *testing.T) {
	judge := otherModel(t)
	var want []float64
	for _, score := range []string{"cosine", "geodesic"} {
		cfg := mafaConfig()
		cfg.Objective.ITC.Score = score
		cfg.Objective.Geodesic.Layers = []int{2, 4}
		m := connected(t, cfg, connectorOf(judge))
		var got []float64
		for i := range 3 { // no graph is built yet, so that scores are cosines
			b := randomBatch(m, uint64(i))
			for _, p := range step(t, m, b, Control{Step: i, UseQueue: true}).Parts {
				if strings.HasPrefix(p.Name, "mafa") || p.Name == "itm" {
					got = append(got, math.Round(p.Value*1e4))
				}
			}
		}
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("in a pool: %v, beside the queue %v", got, want)
		}
	}
}

// TestConnectorIsFrozen: a step changes no parameter of the connector, which has no place
// among the model's, and takes memory that the footprint names.
func TestConnectorIsFrozen(t *testing.T) {
	judge := otherModel(t)
	m := connected(t, mafaConfig(), connectorOf(judge))
	for _, q := range m.params.List() {
		if strings.HasPrefix(q.Name, "connector") {
			t.Errorf("%s is a parameter of the model", q.Name)
		}
	}
	plain := build(t, tinyConfig(), "builtin", 2)
	if a, b := len(m.params.List()), len(plain.params.List()); a != b {
		t.Errorf("%d parameters, without a connector %d", a, b)
	}
	f := m.Footprint()
	if limit := 4 * int64(judge.params.Count()); f.Connector <= 0 || f.Connector > limit || !strings.Contains(f.String(), "connector") {
		t.Errorf("%d bytes for a connector of at most %d: %v", f.Connector, limit, f)
	}
}

// TestUniformShareBeginsWithTheSecondEpoch: the targets of the contrast are exact before.
func TestUniformShareBeginsWithTheSecondEpoch(t *testing.T) {
	cfg := mafaConfig()
	cfg.Objective.MAFA.Uniform = .5
	m := connected(t, cfg, connectorOf(otherModel(t)))
	s := m.feed(randomBatch(m, 1), Control{})
	for update, want := range []float32{0, 0, 0, .5, .5} {
		s.Update, s.PerEpoch = update, 3
		stepOf(t, m, s)
		if got := m.floats("uniform share")[0]; got != want {
			t.Errorf("update %d of 3 per epoch: a share of %v, want %v", update, got, want)
		}
	}
}

func TestConnectorErrors(t *testing.T) {
	judge := connectorOf(otherModel(t))
	with := func(change func(*Connector)) *Connector {
		c := *judge
		change(&c)
		return &c
	}
	for want, c := range map[string]*Connector{
		"vocabulary of this run, 40 tokens (it has 41)": with(func(c *Connector) { c.Vocab = 41 }),
		"images of model.image.size = 16 (it takes 32)": with(func(c *Connector) { c.Model.Image.Size = 32 }),
		"data.tokens = 6 positions (it has 5)":          with(func(c *Connector) { c.Model.Text.Positions = 5 }),
		"of system albef (this one is of system":        with(func(c *Connector) { c.Model.System = "heads" }),
	} {
		_, err := newConnected(mafaConfig(), newEngine(t), c)
		check.Error(t, err, want, ConnectorKey)
	}
	// Without its connector a model evaluates, but does not train.
	m := modelOn(t, mafaConfig(), newEngine(t))
	b := randomBatch(m, 1)
	if _, _, err := m.EncodeImages(b.Images, 4); err != nil {
		t.Error(err)
	}
	check.Fails(m.Step(t.Context(), m.feed(b, Control{})))(t, ConnectorKey)
}
