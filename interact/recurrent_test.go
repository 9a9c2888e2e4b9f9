package interact

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
)

// look is the score of a step by the definition, with the contexts of the queries x, which were q.
func look(q, x, k [][]float64, imageQueries bool, a Attention, attention, similarity func(i, j int) float64) (score float64, contexts [][]float64) {
	metric := func(q, k []float64, w func(i, j int) float64) float64 {
		if imageQueries {
			return bilinear(q, k, w)
		}
		return bilinear(k, q, w)
	}
	b, norms := make([][]float64, len(q)), make([]float64, len(k))
	for i := range q {
		for j := range k {
			v := metric(x[i], k[j], attention)
			v = max(v, .1*v)
			b[i], norms[j] = append(b[i], v), norms[j]+v*v
		}
	}
	for i := range q {
		context, sum, length := make([]float64, channels), 0., 0.
		for j := range k {
			e := math.Exp(float64(a.Scale) * b[i][j] / (math.Sqrt(norms[j]) + 1e-8))
			sum += e
			for c := range context {
				context[c] += e * k[j][c]
			}
		}
		for c := range context {
			context[c] /= sum
			length += context[c] * context[c]
		}
		contexts = append(contexts, context)
		score += metric(q[i], context, similarity) / math.Sqrt(length) / float64(len(q))
	}
	return score, contexts
}

// steps is the score of one direction, with the memory unit of the store.
func (s *store) steps(q, k [][]float64, imageQueries bool, m Recurrent, a Attention, attention, similarity func(i, j int) float64) (score float64) {
	if len(q) == 0 || len(k) == 0 {
		return 0
	}
	name := "interaction/text_to_image/memory/"
	if imageQueries {
		name = "interaction/image_to_text/memory/"
	}
	x := q
	for step := range m.Steps {
		one, contexts := look(q, x, k, imageQueries, a, attention, similarity)
		score += one
		if step+1 == m.Steps {
			break
		}
		weight, bias := s.floatsOf(name+"weight"), s.floatsOf(name+"bias")
		var next [][]float64
		for i := range x {
			both, row, length := append(slices.Clone(x[i]), contexts[i]...), make([]float64, channels), 0.
			linear := func(r int) float64 {
				sum := float64(bias[r])
				for c, v := range both {
					sum += float64(weight[r*2*channels+c]) * v
				}
				return sum
			}
			for c := range row {
				gate := 1 / (1 + math.Exp(-linear(c)))
				row[c] = gate*x[i][c] + (1-gate)*math.Tanh(linear(channels+c))
				length += row[c] * row[c]
			}
			for c := range row {
				if m.Unit {
					row[c] /= math.Sqrt(length)
				}
			}
			next = append(next, row)
		}
		x = next
	}
	return score
}

// TestRecurrent compares both directions, one and the sum, under every form of the metric at
// every site, with the definition.
func TestRecurrent(t *testing.T) {
	i2t, t2i := &Attention{Scale: 4}, &Attention{Scale: 9}
	for _, form := range []string{"", "cosine", "diag", "block_diag", "dense"} {
		for kind := range 24 {
			sites, ways := kind%4, 1+kind/8
			m, metric := Recurrent{Share: .5, Steps: 1 + kind%3, Unit: kind&4 != 0}, encoders.Metric{Form: form, Blocks: 2, Dim: channels}
			if sites&1 != 0 {
				m.Attention = metric
			}
			if sites&2 != 0 {
				m.Similarity = metric
			}
			if ways&1 != 0 {
				m.ImageToText = i2t
			}
			if ways&2 != 0 {
				m.TextToImage = t2i
			}
			s, got := scores(t, m, .3, false)
			w := func(site string, m encoders.Metric) func(i, j int) float64 {
				if m.Shape() == nil {
					return dense("", 0, nil)
				}
				return dense(form, 2, s.floatsOf(encoders.MetricName(site)))
			}
			attention, similarity := w(encoders.AttentionSite, m.Attention), w(encoders.SimilaritySite, m.Similarity)
			for at, v := range got {
				x, y := s.unit("images", at/numTexts), s.unit("texts", at%numTexts)
				want := 0.
				if m.ImageToText != nil {
					want += s.steps(x, y, true, m, *i2t, attention, similarity)
				}
				if m.TextToImage != nil {
					want += s.steps(y, x, false, m, *t2i, attention, similarity)
				}
				if ways == 3 {
					want /= 2
				}
				if !(math.Abs(float64(v)-want) < 5e-5) {
					t.Fatalf("%q, %+v: score %d is %v, want %v", form, m, at, v, want)
				}
			}
		}
	}
}

// TestRecurrentStartsAsTheCosine: to the bit, at either site and both, and one step is Cross.
func TestRecurrentStartsAsTheCosine(t *testing.T) {
	plain := Recurrent{ImageToText: &Attention{Scale: 4}, TextToImage: &Attention{Scale: 9, Pool: 6}, Share: 1, Steps: 3}
	startsAsWithout(t, func(attention, similarity encoders.Metric) encoders.Interaction {
		m := plain
		m.Attention, m.Similarity = attention, similarity
		return m
	})
	plain.Steps = 1
	s, got := scores(t, plain, 0, false)
	_, once := scores(t, Cross{ImageToText: plain.ImageToText, TextToImage: plain.TextToImage, Share: 1}, 0, false)
	if !slices.Equal(got, once) || s.nodes["interaction/text_to_image/memory/weight"] != nil {
		t.Error("one step is not cross attention")
	}
}

// TestRecurrentGradients: the memory units, the metrics of both sites and the tokens have those of
// finite differences.
func TestRecurrentGradients(t *testing.T) {
	metric := encoders.Metric{Form: "block_diag", Blocks: 2, Dim: channels}
	m := Recurrent{ImageToText: &Attention{Scale: 4}, TextToImage: &Attention{Scale: 6}, Share: 1, Steps: 3, Attention: metric, Similarity: metric}
	s := newStore(.2)
	x, y := s.pair(false)
	score := m.Scores(&encoders.Context{}, encoders.NewScope(s), x, y)
	s.checkGradients(t, arith.Sum(nn.ScaleColumns(score, s.floats("slopes", []float32{1, -2, 3, .5}, numTexts))),
		"gssf/weight", "gssf/attention/weight", "images", "texts", "interaction/text_to_image/memory/weight", "interaction/image_to_text/memory/weight",
		"interaction/text_to_image/memory/bias", "interaction/image_to_text/memory/bias")
}
