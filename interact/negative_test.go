package interact

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// negativeScore is the score of a pair by the definition.
func negativeScore(q, k [][]float64, lambda, bound float64, share bool, attention, similarity func(i, j int) float64) (score float64) {
	if len(q) == 0 || len(k) == 0 {
		return 0
	}
	leaky := func(v float64) float64 { return max(v, .1*v) }
	norms, over := make([]float64, len(k)), make([]float64, len(q))
	for a := range q {
		over[a] = math.Inf(-1)
		for c := range k {
			norms[c] += math.Pow(leaky(bilinear(k[c], q[a], attention)), 2)
			over[a] = max(over[a], bilinear(k[c], q[a], similarity)-bound)
		}
	}
	one := dense("", 0, nil)
	for a := range q {
		sum, all, mismatch := 0., 0., over[a]
		for l := range q {
			e := math.Exp(5 * bilinear(q[a], q[l], one))
			sum, all = sum+e*over[l], all+e
		}
		if share {
			mismatch = sum / all
		}
		if mismatch < 0 {
			score += over[a]
		}
		context, kept, scored, relevance, weights, length := make([]float64, channels), 0., 0., 0., 0., 0.
		for c := range k {
			x, y := bilinear(k[c], q[a], attention), bilinear(k[c], q[a], similarity)
			if x > bound {
				e := math.Exp(lambda * x)
				kept, scored = kept+e, scored+e*y
				for d := range context {
					context[d] += e * k[c][d]
				}
			}
			e := math.Exp(lambda * leaky(x) / (math.Sqrt(norms[c]) + 1e-8))
			relevance, weights = relevance+e*y, weights+e
		}
		for _, v := range context {
			length += v * v
		}
		if kept > 0 {
			score += scored / math.Sqrt(length)
		}
		score += relevance / weights
	}
	return score / float64(len(q))
}

// TestNegative compares training, which gives samples, and evaluation, which has a boundary of its
// own, with the definition, under every form of the metric at every site.
func TestNegative(t *testing.T) {
	for _, form := range []string{"", "diag", "block_diag", "dense"} {
		for kind := range 8 {
			sites, training := kind%4, kind&4 != 0
			m, metric := Negative{Scale: 20}, encoders.Metric{Form: form, Blocks: 2, Dim: channels}
			if sites&1 != 0 {
				m.Attention = metric
			}
			if sites&2 != 0 {
				m.Similarity = metric
			}
			s := newStore(.2)
			images, texts := s.pair(false)
			c, bound := &encoders.Context{}, 1
			if training {
				// An image for each text.
				texts.Rows = nn.GatherRows(texts.Rows, s.ints("places", firstPlaces(numImages*textLen)), 1)
				texts.Lengths = s.ints("short", textRows[:numImages])
				bound, c.Samples = 0, func(n *gorgonia.Node) { s.nodes["samples"] = n }
			}
			score := m.Scores(c, encoders.NewScope(s), images, texts)
			copy(s.floatsOf(BoundaryName), []float32{.4, .1})
			samples := s.nodes["samples"]
			delete(s.nodes, "samples")
			if training != (samples != nil) {
				t.Fatal("samples")
			}
			w := func(site string, m encoders.Metric) func(i, j int) float64 {
				if m.Shape() == nil {
					return dense("", 0, nil)
				}
				return dense(form, 2, s.floatsOf(encoders.MetricName(site)))
			}
			attention, similarity := w(encoders.AttentionSite, m.Attention), w(encoders.SimilaritySite, m.Similarity)
			got := s.run(t, score)[0]
			n := score.Shape()[1]
			for at, v := range got {
				want := negativeScore(s.unit("texts", at%n), s.unit("images", at/n), 20, float64(s.floatsOf(BoundaryName)[bound]), !training, attention, similarity)
				if !(math.Abs(float64(v)-want) < 5e-5) {
					t.Fatalf("%q, sites %b, training %t: score %d is %v, want %v", form, sites, training, at, v, want)
				}
			}
		}
	}
}

// textRows are the lengths of the texts without what stands around them.
var textRows = func() (list []int32) {
	for _, n := range textLengths {
		list = append(list, n-1)
	}
	return list
}()

func firstPlaces(n int) (list []int32) {
	for i := range n {
		list = append(list, int32(i))
	}
	return list
}

// TestNegativeStartsAsTheCosine: to the bit, at either site and both.
func TestNegativeStartsAsTheCosine(t *testing.T) {
	startsAsWithout(t, func(attention, similarity encoders.Metric) encoders.Interaction {
		return Negative{Scale: 20, Attention: attention, Similarity: similarity}
	})
}

// TestNegativeGradients: the metrics of both sites and the tokens have those of finite differences.
func TestNegativeGradients(t *testing.T) {
	metric := encoders.Metric{Form: "block_diag", Blocks: 2, Dim: channels}
	s := newStore(.2)
	x, y := s.pair(false)
	score := Negative{Scale: 4, Attention: metric, Similarity: metric}.Scores(&encoders.Context{}, encoders.NewScope(s), x, y)
	s.checkGradients(t, arith.Sum(nn.ScaleColumns(score, s.floats("slopes", []float32{1, -2, 3, .5}, numTexts))), "gssf/weight", "gssf/attention/weight", "images", "texts")
}
