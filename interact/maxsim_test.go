package interact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/space"
)

// sizes of the tests: images of T tokens of which the first is a class token, texts of L places.
const (
	numImages, imageLen = 3, 4
	numTexts, textLen   = 4, 5
	channels            = 8
)

var textLengths = []int32{5, 3, 2, 4}

// pair are the sides of a test: tokens before their norm, as a projection gives them.
func (s *store) pair(all bool) (images, texts encoders.Local) {
	r := rand.New(rand.NewPCG(62, 1))
	normal := func(n int) []float32 {
		v := make([]float32, n*channels)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	head := encoders.Projection{Space: space.Space{Dim: channels, Spheres: 1}}
	x := s.floats("images", normal(numImages*imageLen), numImages*imageLen, channels)
	y := s.floats("texts", normal(numTexts*textLen), numTexts*textLen, channels)
	image := encoders.Sequence{Len: imageLen, Begin: 1}
	text := encoders.Sequence{Len: textLen, Begin: 1, End: 1, Lengths: s.ints("lengths", textLengths)}
	return image.Local(head, x, all), text.Local(head, y, all)
}

// scores are those of an interaction over the pair.
func scores(t *testing.T, m encoders.Interaction, move float64, all bool) (*store, []float32) {
	s := newStore(move)
	x, y := s.pair(all)
	return s, s.run(t, m.Scores(&encoders.Context{}, encoders.NewScope(s), x, y))[0]
}

// naive is the definition of MaxSim in float64, W as a dense matrix.
func (m MaxSim) naive(s *store, w func(i, j int) float64, all bool) (list []float32) {
	row := func(side string, i int) (unit, raw []float64) {
		norm := 0.
		for _, v := range s.floatsOf(side)[i*channels:][:channels] {
			raw = append(raw, float64(v))
			norm += float64(v) * float64(v)
		}
		for _, v := range raw {
			unit = append(unit, v/math.Sqrt(norm))
		}
		return unit, raw
	}
	weights := func(side string, rows []int) []float64 {
		v, sum := make([]float64, len(rows)), 0.
		for k, i := range rows {
			switch m.Reduce {
			case Mean:
				v[k] = 1 / float64(len(rows))
			case Sum:
				v[k] = 1
			default:
				_, x := row(side+"s", i)
				at := "interaction/" + side + "/"
				w1, b1, w2, b2 := s.floatsOf(at+"fc1/weight"), s.floatsOf(at+"fc1/bias"), s.floatsOf(at+"fc2/weight"), s.floatsOf(at+"fc2/bias")
				logit := float64(b2[0])
				for h := range m.Hidden {
					z := float64(b1[h])
					for c := range channels {
						z += float64(w1[h*channels+c]) * x[c]
					}
					logit += float64(w2[h]) * max(z, 0)
				}
				v[k] = math.Exp(logit)
			}
			sum += v[k]
		}
		if m.Reduce == Soft {
			for k := range v {
				v[k] /= sum
			}
		}
		return v
	}
	for i := range numImages {
		for j := range numTexts {
			var ts, ls []int
			begin, end := 1, 1
			if all {
				begin, end = 0, 0
			}
			for t := begin; t < imageLen; t++ {
				ts = append(ts, i*imageLen+t)
			}
			for l := begin; l < int(textLengths[j])-end; l++ {
				ls = append(ls, j*textLen+l)
			}
			product := func(t, l int) (sum float64) {
				x, _ := row("images", t)
				y, _ := row("texts", l)
				for a := range channels {
					for b := range channels {
						sum += x[a] * w(a, b) * y[b]
					}
				}
				return sum
			}
			best := func(at int, from []int, of func(at, other int) float64) float64 {
				top := math.Inf(-1)
				for _, other := range from {
					top = max(top, of(at, other))
				}
				return top
			}
			score, ways := 0., 0.
			if m.ImageToText {
				ways++
				for k, v := range weights("image", ts) {
					if len(ls) > 0 {
						score += v * best(ts[k], ls, product)
					}
				}
			}
			if m.TextToImage {
				ways++
				for k, v := range weights("text", ls) {
					score += v * best(ls[k], ts, func(l, t int) float64 { return product(t, l) })
				}
			}
			list = append(list, float32(score/ways))
		}
	}
	return list
}

// dense is W of a metric from its weights.
func dense(form string, blocks int, weights []float32) func(i, j int) float64 {
	return func(i, j int) float64 {
		size := channels
		switch form {
		case "", "cosine":
			if i == j {
				return 1
			}
			return 0
		case "diag":
			size = 1
		case "block_diag":
			size = channels / blocks
		}
		if i/size != j/size {
			return 0
		}
		return float64(weights[(i/size*size+i%size)*size+j%size])
	}
}

// TestMaxSim compares every kind, one way and both, under every form of the metric, with the
// definition: class tokens and the ends of texts take part only where they shall, a text of
// nothing else has the score 0.
func TestMaxSim(t *testing.T) {
	for _, reduce := range []Reduce{Mean, Sum, Soft} {
		for ways := 1; ways < 4; ways++ {
			for _, form := range []string{"", "cosine", "diag", "block_diag", "dense"} {
				for _, all := range []bool{false, true} {
					name := fmt.Sprintf("reduce %d, ways %d, %q, all %t", reduce, ways, form, all)
					m := MaxSim{Reduce: reduce, ImageToText: ways&1 != 0, TextToImage: ways&2 != 0, Hidden: 6, Metric: encoders.Metric{Form: form, Blocks: 2, Dim: channels}}
					s, got := scores(t, m, .3, all)
					var weights []float32
					if m.Metric.Shape() != nil {
						weights = s.floatsOf("gssf/weight")
					}
					for i, want := range m.naive(s, dense(form, 2, weights), all) {
						if !(math.Abs(float64(got[i]-want)) < 1e-5) {
							t.Fatalf("%s: score %d is %v, want %v", name, i, got[i], want)
						}
						if !all && textLengths[i%numTexts] == 2 && got[i] != 0 {
							t.Errorf("%s: a text without words has the score %v", name, got[i])
						}
					}
				}
			}
		}
	}
}

// TestMetricStartsAsTheCosine: to the bit.
func TestMetricStartsAsTheCosine(t *testing.T) {
	both := MaxSim{ImageToText: true, TextToImage: true}
	_, want := scores(t, both, 0, false)
	for _, form := range []string{"cosine", "diag", "block_diag", "dense"} {
		both.Metric = encoders.Metric{Form: form, Blocks: 2, Dim: channels}
		if _, got := scores(t, both, 0, false); !slices.Equal(got, want) {
			t.Errorf("%s starts with other scores than the cosine", form)
		}
	}
}

// TestSoftGradients: the MLP of a side and the metric have those of finite differences.
func TestSoftGradients(t *testing.T) {
	m := MaxSim{Reduce: Soft, ImageToText: true, TextToImage: true, Hidden: 3, Metric: encoders.Metric{Form: "block_diag", Blocks: 2, Dim: channels}}
	s := newStore(.4)
	x, y := s.pair(false)
	score := m.Scores(&encoders.Context{}, encoders.NewScope(s), x, y)
	loss := arith.Sum(nn.ScaleColumns(score, s.floats("slopes", []float32{1, -2, 3, .5}, numTexts)))
	s.checkGradients(t, loss, "interaction/image/fc1/weight", "interaction/text/fc2/weight", "interaction/text/fc1/bias", "gssf/weight", "images", "texts")
}

// TestSites: the metric of another site has weights of its own.
func TestSites(t *testing.T) {
	s := newStore(0)
	m := encoders.Metric{Form: "diag", Dim: channels}
	scope := encoders.NewScope(s)
	if m.Weights(nil, scope, encoders.SimilaritySite) == m.Weights(nil, scope, encoders.AttentionSite) || s.nodes["gssf/attention/weight"] == nil {
		t.Errorf("parameters %v", s.nodes)
	}
}
