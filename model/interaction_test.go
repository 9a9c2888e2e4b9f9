package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// tinyFILIP is the dual encoder of tinyCLIP, compared by tokens.
func tinyFILIP(kind string) config.Config {
	c := tinyCLIP("sphere")
	c.Model.Interaction.Kind = kind
	return c
}

// buildInteraction builds a model whose texts begin with one token that is not a word.
func buildInteraction(t testing.TB, cfg config.Config) *Trainer {
	t.Helper()
	check.OK(t, cfg.Validate())
	m := newTrainer(t, cfg, Options{Engine: newEngine(t), Vocab: tinyVocab, Begin: 1})
	t.Cleanup(func() { m.Close() })
	return m
}

// tokenRows are the tokens of a side that take part, as unit rows: those after the first.
func tokenRows(t testing.TB, m *Trainer, e *Encoder, b Batch, lengths []int32) (rows [][][]float64) {
	t.Helper()
	states, _ := check.Get2(e.Encode(t.Context(), m.feed(b, Control{}).Batch))(t)
	n, d := len(b.IDs), e.Width()
	var weight, bias []float32
	if q, ok := m.params.Get(e.side.proj + "/weight"); ok {
		weight = m.params.Value(q)
	}
	if q, ok := m.params.Get(e.side.proj + "/bias"); ok {
		bias = m.params.Value(q)
	}
	for i := range n {
		last := e.Len()
		if lengths != nil {
			last = int(lengths[i])
		}
		var tokens [][]float64
		for k := 1; k < last; k++ {
			x := states[(i*e.Len()+k)*d:][:d]
			row, sum := make([]float64, m.Dim()), 0.
			for c := range row {
				if weight == nil {
					row[c] = float64(x[c])
				}
				for j := 0; weight != nil && j < d; j++ {
					row[c] += float64(weight[c*d+j]) * float64(x[j])
				}
				if bias != nil {
					row[c] += float64(bias[c])
				}
				sum += row[c] * row[c]
			}
			for c := range row {
				row[c] /= math.Sqrt(sum)
			}
			tokens = append(tokens, row)
		}
		rows = append(rows, tokens)
	}
	return rows
}

// naiveMaxAve is the mean of the tokens' largest products, both ways.
func naiveMaxAve(x, y [][][]float64) (s [][]float64) {
	way := func(x, y [][]float64) (sum float64) {
		for _, a := range x {
			best := math.Inf(-1)
			for _, b := range y {
				dot := 0.
				for c := range a {
					dot += a[c] * b[c]
				}
				best = max(best, dot)
			}
			sum += best / float64(len(x))
		}
		return sum
	}
	for i := range x {
		var row []float64
		for j := range y {
			row = append(row, (way(x[i], y[j])+way(y[j], x[i]))/2)
		}
		s = append(s, row)
	}
	return s
}

// TestInteraction compares the losses of a model that compares tokens with their definitions
// over the tokens that its towers give: class tokens and padding take no part.
func TestInteraction(t *testing.T) {
	wide := tinyFILIP("max_ave")
	wide.Model.System, wide.Model.Head.Dim, wide.Model.Text.FusionLayers = "matching", 16, 0 // as wide as the image tower
	for name, cfg := range map[string]config.Config{"clip": tinyFILIP("max_ave"), "matching": wide} {
		for _, positives := range []string{"pair", "id"} {
			o := &cfg.Objective
			o.ITC.Positives = positives
			o.Hinge, o.Poly, o.CMPM = objectives.Hinge{Weighted: section.Weigh(1), Margin: .2, Negatives: "hardest"}, objectives.Poly{Weighted: section.Weigh(1), Margin: .2}, objectives.CMPM{Weighted: section.Weigh(1), Scale: 2}
			m := buildInteraction(t, cfg)
			if _, ok := m.params.Get("image_proj/weight"); ok != (name == "clip") {
				t.Errorf("%s: projection of images %t", name, ok)
			}
			b := randomPairs(m, 7)
			for i := range b.Lengths {
				b.Lengths[i] = max(b.Lengths[i], 2)
			}
			b.IDs[3] = b.IDs[0]
			r := forward(t, m, b, Control{})
			s := naiveMaxAve(tokenRows(t, m, m.Image(), b, nil), tokenRows(t, m, m.Text(), b, b.Lengths))
			comparePairLosses(t, name+" "+positives, r, s, lossIDs(b.IDs, positives), 0.3)
		}
	}
}

// lossIDs are the ids by which pairs match: their own places where positives are pairs.
func lossIDs(ids []int32, positives string) []int32 {
	if positives == "id" {
		return ids
	}
	return iota32(0, len(ids), 1)
}

// comparePairLosses holds the losses over scores s of a step against their definitions.
func comparePairLosses(t *testing.T, name string, r *Result, s [][]float64, ids []int32, tau float64) {
	t.Helper()
	want := map[string]float64{}
	n := float64(len(s))
	for way := range 2 {
		for i := range s {
			own, worst, all, matches := s[i][i], math.Inf(-1), [2]float64{}, 0.
			at := func(j int) float64 {
				if way == 0 {
					return s[i][j]
				}
				return s[j][i]
			}
			for j := range s {
				all[0] += math.Exp(at(j) / tau)
				all[1] += math.Exp(2 * at(j))
				if ids[i] == ids[j] {
					matches++
				} else {
					worst = max(worst, at(j))
				}
			}
			for j := range s {
				q := 0.
				if ids[i] == ids[j] {
					q = 1 / matches
					want["itc_in_batch"] -= (at(j)/tau - math.Log(all[0])) / matches / n / 2
				}
				p := math.Exp(2*at(j)) / all[1]
				want["cmpm"] += p * math.Log(p/(q+1e-8)) / n
			}
			want["hinge"] += max(0, .2+worst-own)
			if worst+.2 > own && own < 1 {
				want["poly"] += (max(0, .2*own*own-.7*own+.5) + max(0, .9*worst*worst-.4*worst+.03)) / n
			}
		}
	}
	for _, p := range r.Parts {
		if v, ok := want[p.Name]; ok && !(math.Abs(p.Value-v) <= 1e-4*math.Max(1, math.Abs(v))) {
			t.Errorf("%s: %s is %v, want %v", name, p.Name, p.Value, v)
		}
		delete(want, p.Name)
	}
	for missing := range want {
		if missing != "itc_in_batch" || tau > 0 {
			t.Errorf("%s: there is no loss %s", name, missing)
		}
	}
}

// TestPairLosses does the same over features, in every system of pairs.
func TestPairLosses(t *testing.T) {
	albef := tinyConfig()
	albef.Model.Text.Dropout = 0
	for name, cfg := range map[string]config.Config{"albef": albef, "clip": tinyCLIP("sphere"), "heads": tinyHeads()} {
		for _, positives := range []string{"pair", "id"} {
			o := &cfg.Objective
			o.ITC.InBatchWeight, o.ITC.Positives = 0, positives
			o.Hinge, o.Poly, o.CMPM = objectives.Hinge{Weighted: section.Weigh(1), Margin: .2, Negatives: "hardest"}, objectives.Poly{Weighted: section.Weigh(1), Margin: .2}, objectives.CMPM{Weighted: section.Weigh(1), Scale: 2}
			m := build(t, cfg, "plain", 1)
			b := randomBatch(m, 3)
			r := forward(t, m, b, Control{})
			var s [][]float64
			_, x := check.Get2(m.Image().Encode(t.Context(), m.feed(b, Control{}).Batch))(t)
			_, y := check.Get2(m.Text().Encode(t.Context(), m.feed(b, Control{}).Batch))(t)
			d := m.Dim()
			for i := range b.IDs {
				s = append(s, make([]float64, len(b.IDs)))
				for j := range b.IDs {
					for c := range d {
						s[i][j] += float64(x[i*d+c]) * float64(y[j*d+c])
					}
				}
			}
			r.Parts = append(r.Parts, Part{Name: "itc_in_batch", Value: math.NaN()})
			for i, p := range r.Parts { // compared elsewhere
				if p.Name == "itc_in_batch" {
					r.Parts[i].Name = "other"
				}
			}
			comparePairLosses(t, name+" "+positives, r, s, lossIDs(b.IDs, positives), 0)
		}
	}
}

// TestHingeWarmup: all negatives come before the hardest ones, by steps or by epochs.
func TestHingeWarmup(t *testing.T) {
	for name, c := range map[string]struct {
		hinge    objectives.Hinge
		perEpoch float64
	}{
		"steps":  {objectives.Hinge{Weighted: section.Weigh(1), Margin: 2, Negatives: "hardest", WarmupSteps: 3}, 100},
		"epochs": {objectives.Hinge{Weighted: section.Weigh(1), Margin: 2, Negatives: "hardest", WarmupEpochs: 1.5}, 2},
	} {
		value := func(h objectives.Hinge, update int) float64 {
			cfg := tinyCLIP("sphere")
			cfg.Objective.ITC.InBatchWeight, cfg.Objective.Hinge = 0, h
			m := buildCLIP(t, cfg)
			f := m.feed(randomPairs(m, 5), Control{})
			f.Update, f.PerEpoch = update, c.perEpoch
			return stepOf(t, m, f).Loss
		}
		all, hardest := c.hinge, c.hinge
		all.Negatives, hardest.WarmupSteps, hardest.WarmupEpochs = "all", 0, 0
		if a, b := value(all, 0), value(hardest, 0); !(a > b) {
			t.Fatalf("all negatives %v, the hardest %v", a, b)
		}
		if got := value(c.hinge, 2); got != value(all, 2) {
			t.Errorf("%s: update 2 has %v, not all negatives", name, got)
		}
		if got := value(c.hinge, 3); got != value(hardest, 3) {
			t.Errorf("%s: update 3 has %v, not the hardest negatives", name, got)
		}
	}
}

// TestPairLossChance: scores of 0 have the losses that the log says of chance.
func TestPairLossChance(t *testing.T) {
	for _, negatives := range []string{"hardest", "all"} {
		cfg := tinyCLIP("sphere")
		o := &cfg.Objective
		o.ITC.InBatchWeight = 0
		o.Hinge, o.Poly, o.CMPM = objectives.Hinge{Weighted: section.Weigh(1), Margin: .2, Negatives: negatives}, objectives.Poly{Weighted: section.Weigh(1), Margin: .2}, objectives.CMPM{Weighted: section.Weigh(1), Scale: 2}
		m := buildCLIP(t, cfg)
		n := cfg.Train.BatchSize
		s := make([][]float64, n)
		for i := range s {
			s[i] = make([]float64, n)
		}
		r := &Result{Parts: m.Chance()}
		if negatives == "all" {
			r.Parts[0].Value /= float64(n - 1)
		}
		r.Parts = append(r.Parts, Part{Name: "itc_in_batch"})
		comparePairLosses(t, negatives, &Result{Parts: r.Parts[:3]}, s, iota32(0, n, 1), 0)
	}
}

// TestInteractionGradients: towers, heads, the weights of tokens and the metric have those of
// finite differences.
func TestInteractionGradients(t *testing.T) {
	cfg := tinyFILIP("max_soft")
	cfg.Objective.ITC.Score, cfg.Objective.GSSF.Form, cfg.Objective.GSSF.Blocks = "gssf", "block_diag", 2
	m := buildInteraction(t, cfg)
	b := randomPairs(m, 5)
	checkDifferences(t, m, func(float64) float64 {
		return forward(t, m, b, Control{}).Loss
	}, []string{"gssf/weight", "interaction/image/fc1/weight", "interaction/text/fc2/weight", "image_proj/weight", "text_proj/weight", "image/patch_embed/weight", "text/layers/00/attention/output/weight"})
}

// TestInteractionHasNoFeatures: what gives an image one vector is no part of the step.
func TestInteractionHasNoFeatures(t *testing.T) {
	m := buildInteraction(t, tinyFILIP("max_ave"))
	for _, q := range m.params.List() {
		if !m.Learnable(q.Name) {
			t.Errorf("%s is a parameter that nothing trains", q.Name)
		}
	}
}

// TestInteract: blocks of encoded images and texts have the scores of the training step, as
// many rows as there are, and rows without tokens have the score 0.
func TestInteract(t *testing.T) {
	cfg := tinyFILIP("max_ave")
	m := buildInteraction(t, cfg)
	if name := m.Interaction().Name(); name != "max_ave" {
		t.Errorf("name %q", name)
	}
	b := randomPairs(m, 7)
	b.Lengths[1] = 1 // no word
	f := m.feed(b, Control{}).Batch
	images, imageLengths := check.Get2(m.Image().EncodeTokens(t.Context(), f))(t)
	texts, textLengths := check.Get2(m.Text().EncodeTokens(t.Context(), f))(t)
	want := naiveMaxAve(tokenRows(t, m, m.Image(), b, nil), tokenRows(t, m, m.Text(), b, b.Lengths))
	n := len(want)
	check := func(got []float32, rows, columns int) {
		t.Helper()
		for i := range rows {
			for j := range columns {
				v := want[i][j]
				if j == 1 {
					v = 0
				}
				if !(math.Abs(float64(got[i*columns+j])-v) <= 1e-5) {
					t.Errorf("%d x %d: score of image %d and text %d is %v, want %v", rows, columns, i, j, got[i*columns+j], v)
				}
			}
		}
	}
	for _, size := range [][2]int{{n, n}, {2, n}, {1, 3}} {
		got, err := m.Interaction().Scores(t.Context(), images[:size[0]*m.Image().Len()*m.Dim()], imageLengths[:size[0]], texts[:size[1]*m.Text().Len()*m.Dim()], textLengths[:size[1]])
		if err != nil {
			t.Fatal(err)
		}
		check(got, size[0], size[1])
	}
	if _, err := m.PairScore(); err != ErrNoFeatures {
		t.Errorf("score of features: %v", err)
	}
	plain := buildCLIP(t, tinyCLIP("sphere"))
	if plain.Interaction() != nil {
		t.Error("a model of features interacts")
	}
}
