package interact

import (
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// unit returns the rows of a side, unit vectors, and which of them are those of a sequence.
func (s *store) unit(side string, sequence int) (rows [][]float64) {
	from, to := sequence*imageLen+1, (sequence+1)*imageLen
	if side == "texts" {
		from = sequence*textLen + 1
		to = from + max(0, int(textLengths[sequence])-2)
	}
	for i := from; i < to; i++ {
		row, sum := make([]float64, channels), 0.
		for c, v := range s.floatsOf(side)[i*channels:][:channels] {
			row[c] = float64(v)
			sum += row[c] * row[c]
		}
		for c := range row {
			row[c] /= math.Sqrt(sum)
		}
		rows = append(rows, row)
	}
	return rows
}

// bilinear is x^T W y.
func bilinear(x, y []float64, w func(i, j int) float64) (sum float64) {
	for i := range x {
		for j := range y {
			sum += x[i] * w(i, j) * y[j]
		}
	}
	return sum
}

// way is the score of one direction by the definition in which contexts are formed. Both vectors
// are brought to length 1 before the metric.
func way(q, k [][]float64, imageQueries bool, a Attention, attention, similarity func(i, j int) float64) float64 {
	if len(q) == 0 || len(k) == 0 {
		return 0
	}
	metric := func(q, k []float64, w func(i, j int) float64) float64 {
		if imageQueries {
			return bilinear(q, k, w)
		}
		return bilinear(k, q, w)
	}
	b, norms := make([][]float64, len(q)), make([]float64, len(k))
	for i := range q {
		for j := range k {
			v := metric(q[i], k[j], attention)
			v = max(v, .1*v)
			b[i], norms[j] = append(b[i], v), norms[j]+v*v
		}
	}
	score := 0.
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
		for c := range context {
			context[c] /= math.Sqrt(length)
		}
		r := metric(q[i], context, similarity)
		if a.Pool > 0 {
			score += math.Exp(float64(a.Pool) * r)
		} else {
			score += r / float64(len(q))
		}
	}
	if a.Pool > 0 {
		return math.Log(score) / float64(a.Pool)
	}
	return score
}

// TestCross compares both directions, one and the sum, under every form of the metric at every
// site, with the definition.
func TestCross(t *testing.T) {
	i2t, t2i := &Attention{Scale: 4, Pool: 5}, &Attention{Scale: 9}
	for _, form := range []string{"", "cosine", "diag", "block_diag", "dense"} {
		for sites := range 4 {
			for ways := 1; ways < 4; ways++ {
				m, metric := Cross{Share: .5}, encoders.Metric{Form: form, Blocks: 2, Dim: channels}
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
						want += way(x, y, true, *i2t, attention, similarity)
					}
					if m.TextToImage != nil {
						want += way(y, x, false, *t2i, attention, similarity)
					}
					if ways == 3 {
						want /= 2
					}
					if !(math.Abs(float64(v)-want) < 2e-5) {
						t.Fatalf("%q at sites %b, ways %b: score %d is %v, want %v", form, sites, ways, at, v, want)
					}
				}
			}
		}
	}
}

// TestCrossStartsAsTheCosine: to the bit, at either site and both.
func TestCrossStartsAsTheCosine(t *testing.T) {
	for _, focal := range []bool{false, true} {
		plain := Cross{ImageToText: &Attention{Scale: 4, Pool: 5}, TextToImage: &Attention{Scale: 9, Pool: 6}, Share: .5, Focal: focal}
		startsAsWithout(t, func(attention, similarity encoders.Metric) encoders.Interaction {
			m := plain
			m.Attention, m.Similarity = attention, similarity
			return m
		})
	}
}

// TestNoDirection: scores of no direction are told as a mistake in the construction.
func TestNoDirection(t *testing.T) {
	for name, m := range map[string]encoders.Interaction{"cross": Cross{Share: 1}, "one step": Recurrent{Share: 1, Steps: 1}, "steps": Recurrent{Share: 1, Steps: 2}} {
		s := newStore(.4)
		x, y := s.pair(false)
		err := func() (err error) {
			defer op.Catch(&err)
			m.Scores(&encoders.Context{}, encoders.NewScope(s), x, y)
			return nil
		}()
		if err == nil || !strings.Contains(err.Error(), "set ImageToText, TextToImage or both") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCrossGradients: the metrics of both sites and the tokens have those of finite differences.
func TestCrossGradients(t *testing.T) {
	metric := encoders.Metric{Form: "block_diag", Blocks: 2, Dim: channels}
	m := Cross{ImageToText: &Attention{Scale: 4, Pool: 5}, TextToImage: &Attention{Scale: 9}, Share: 1, Attention: metric, Similarity: metric}
	s := newStore(.4)
	x, y := s.pair(false)
	score := m.Scores(&encoders.Context{}, encoders.NewScope(s), x, y)
	s.checkGradients(t, arith.Sum(nn.ScaleColumns(score, s.floats("slopes", []float32{1, -2, 3, .5}, numTexts))),
		"gssf/weight", "gssf/attention/weight", "images", "texts")
}

// checkGradients compares gradients of a loss with finite differences, at every third value.
func (s *store) checkGradients(t *testing.T, loss *gorgonia.Node, names ...string) {
	t.Helper()
	var wrt gorgonia.Nodes
	for _, n := range names {
		wrt = append(wrt, s.nodes[n])
	}
	grads, err := gorgonia.Grad(loss, wrt...)
	if err != nil {
		t.Fatal(err)
	}
	out := s.run(t, append(gorgonia.Nodes{loss}, grads...)...)
	for k, name := range names {
		v := s.floatsOf(name)
		for i := 0; i < len(v); i += 3 {
			const h = 1e-3
			at := func(d float32) float64 {
				old := v[i]
				v[i] = old + d
				defer func() { v[i] = old }()
				return float64(s.run(t, loss)[0][0])
			}
			if want := (at(h) - at(-h)) / (2 * h); !(math.Abs(float64(out[1+k][i])-want) <= 2e-2*max(1, math.Abs(want))) {
				t.Errorf("gradient of %s[%d] is %v, finite differences %v", name, i, out[1+k][i], want)
			}
		}
	}
}
