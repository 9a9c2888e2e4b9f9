package objectives

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// localOracle is the local term for parts (b*p, c), loop by loop.
func localOracle(whole, parts []float32, b, p, c, first int, lengths []int32, tau float64) float64 {
	exists := func(j, q int) bool { return q >= first && (lengths == nil || q < int(lengths[j])) }
	s := scores(whole, parts, c, tau)
	var sum float64
	rows := 0
	for i := range b {
		var loss, n float64
		for k := range p {
			if !exists(i, k) {
				continue
			}
			z := math.Exp(s[i][i*p+k])
			for j := range b {
				for q := range p {
					if j != i && exists(j, q) {
						z += math.Exp(s[i][j*p+q])
					}
				}
			}
			loss += math.Log(z) - s[i][i*p+k]
			n++
		}
		if n > 0 {
			sum += loss / n
			rows++
		}
	}
	return sum / float64(max(1, rows))
}

// TestLocalAgainstOracle covers parts of images and tokens of texts, among them a text
// that has only its class token.
func TestLocalAgainstOracle(t *testing.T) {
	for _, k := range []struct {
		b, p, first int
		lengths     []int32
	}{{4, 4, 0, nil}, {3, 6, 1, []int32{6, 3, 2}}, {3, 5, 1, []int32{5, 1, 2}}, {1, 4, 0, nil}} {
		t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
			const c, tau = 7, .2
			r := rand.New(rand.NewPCG(8, 9))
			whole, parts := unitRows(r, k.b, c), unitRows(r, k.b*k.p, c)
			n := newBench(t)
			l := Local{
				Whole: n.floats("whole", whole, k.b, c), Parts: n.floats("parts", parts, k.b*k.p, c),
				First: k.first, Temperature: Temperature{Node: n.floats("tau", []float32{tau})},
			}
			if k.lengths != nil {
				l.Lengths = n.ints("lengths", k.lengths...)
			}
			loss, grads := n.lossAndGrads(l.Build(), l.Whole, l.Temperature.Node)
			at := func(tau float64) float64 {
				return localOracle(whole, parts, k.b, k.p, c, k.first, k.lengths, tau)
			}
			near(t, "loss", loss, at(tau), 1e-6)
			nearAll(t, "gradient of the whole", grads[0], fdGrad(whole, func() float64 { return at(tau) }), 1e-4)
			const h = 1e-4
			nearAll(t, "gradient of the temperature", grads[1], []float64{(at(tau+h) - at(tau-h)) / (2 * h)}, 1e-4)
		})
	}
}

// TestMean weighs terms evenly.
func TestMean(t *testing.T) {
	n := newBench(t)
	x, y, z := n.floats("x", []float32{1}), n.floats("y", []float32{2}), n.floats("z", []float32{6})
	near(t, "mean", float64(n.run(Mean(x, y, z))[0].F32[0]), 3, 1e-6)
	near(t, "of one", float64(n.run(Mean(z))[0].F32[0]), 6, 0)
}

// TestIntraAgainstOracle: the contrast within a modality is by the student's score, and the
// teacher's has no part in it.
func TestIntraAgainstOracle(t *testing.T) {
	const b, q, c, tau = 3, 4, 5, .2
	r := rand.New(rand.NewPCG(8, 10))
	n := newBench(t)
	m := MomentumContrast{
		Score:     cosineAt(n, tau),
		Target:    cosineScore(Temperature{Node: n.floats("tau of the teacher", []float32{.9})}),
		Positives: Positives{Labels: n.ints("own", 0, 1, 2)},
	}
	var want []float64
	side := func(name string) (*gorgonia.Node, *Bank) {
		x, keys, queue := unitRows(r, b, c), unitRows(r, b, c), unitRows(r, q, c)
		want = append(want, softLoss(scores(x, append(slices.Clone(keys), queue...), c, tau), diagonal(b, b+q), nil, 0))
		return n.floats(name, x, b, c), &Bank{Keys: n.floats(name+" keys", keys, b, c), Queue: n.floats(name+" queue", queue, q, c)}
	}
	m.Image, m.ImageBank = side("image")
	m.Text, m.TextBank = side("text")
	i2i, t2t := m.Intra()
	got := n.run(i2i, t2t)
	near(t, "image against image", float64(got[0].F32[0]), want[0], 1e-5)
	near(t, "text against text", float64(got[1].F32[0]), want[1], 1e-5)
}

// temperatureOf is the one parameter of a step with a temperature.
type temperatureOf struct {
	*bench
	value float32
}

func (w temperatureOf) Param(name string, _ encoders.Traits, _ encoders.Init, _ ...int) *gorgonia.Node {
	return w.floats(name, []float32{w.value})
}

// TestLocalPartsOfTowers: the parts of an image are its patches, however many class tokens and registers stand before them, and
// those of a text its tokens behind what begins it, of which a text of SigLIP has none.
func TestLocalPartsOfTowers(t *testing.T) {
	const rows, c, tau, side, words = 3, 5, .2, 2, 3
	r := rand.New(rand.NewPCG(8, 11))
	whole, patches, tokens := unitRows(r, rows, c), unitRows(r, rows*side*side, c), unitRows(r, rows*words, c)
	behind := func(x []float32, begin int) (list []float32) { // with rows of their own before those of each sample
		for own := range slices.Chunk(x, len(x)/rows) {
			list = append(append(list, unitRows(r, begin, c)...), own...)
		}
		return list
	}
	sp := space.Space{Dim: c, Spheres: 1}
	for _, begin := range []int{0, 1, 5, 12} {
		for _, grid := range []int{1, 2} {
			n := newBench(t)
			of := func(name string, x []float32, len int) Side {
				return Side{Features: n.floats(name+" whole", whole, rows, c), Head: encoders.Projection{Space: sp, Identity: true}, Sequence: encoders.Sequence{
					Tokens: n.floats(name, behind(x, begin), rows*(begin+len), c), Len: begin + len, Width: c, Begin: begin,
				}}
			}
			lengths := []int32{3, 1, 2}
			both := Sides{Image: of("image", patches, side*side), Text: of("text", tokens, words)}
			both.Text.Lengths = n.ints("lengths", lengths[0]+int32(begin), lengths[1]+int32(begin), lengths[2]+int32(begin))
			s := &Step{Inputs: feed.New(n.g), Rows: rows, Online: both, Teacher: both,
				Scores: Scores{Params: encoders.NewScope(temperatureOf{n, tau}), Temperature: tau, Space: sp}}
			l := TCL{Local: true, Grid: grid}
			got := n.run(l.localImage(s), l.localText(s))
			parts := patches
			if grid == 1 {
				parts = make([]float32, rows*c)
				for i, v := range patches {
					parts[i/(side*side*c)*c+i%c] += v / (side * side)
				}
			}
			near(t, fmt.Sprintf("image, %d tokens before its patches, grid %d", begin, grid), float64(got[0].F32[0]), localOracle(whole, parts, rows, grid*grid, c, 0, nil, tau), 1e-6)
			near(t, fmt.Sprintf("text, %d tokens before its words", begin), float64(got[1].F32[0]), localOracle(whole, tokens, rows, words, c, 0, lengths, tau), 1e-6)
		}
	}
}
