package objectives

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/objectives/scoring"
	"gorgonia.org/gorgonia"
)

// cosineAt compares by cosine at temperature tau.
func cosineAt(n *bench, tau float32) Score {
	return cosineScore(Temperature{Node: n.floats("tau", []float32{tau})})
}

// TestViewContrastAgainstOracle: the pool is the queue with the batch at the pointer,
// around its end too, and no column counts that does not exist.
func TestViewContrastAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	const b, q, c, tau = 3, 8, 5, .2
	for _, at := range []struct{ pointer, cols int }{{0, 3}, {2, 5}, {5, 8}, {6, 8}, {7, 8}} {
		query, keys, queue := unitRows(r, b, c), unitRows(r, b, c), unitRows(r, q, c)
		pool, own := slices.Clone(queue), make([]int32, b)
		for i := range b {
			own[i] = int32((at.pointer + i) % q)
			copy(pool[int(own[i])*c:], keys[i*c:][:c])
		}
		oracle := func() float64 {
			s := scores(query, pool[:at.cols*c], c, tau)
			hard := make([][]float64, b)
			for i := range hard {
				hard[i] = make([]float64, at.cols)
				hard[i][own[i]] = 1
			}
			return softLoss(s, hard, nil, 0)
		}
		n := newBench(t)
		f := n.floats("query", query, b, c)
		loss, accuracy := ViewContrast{
			Query: f, Score: cosineAt(n, tau), Positives: Positives{Labels: n.ints("own", own...)},
			Bank: &Bank{Keys: n.floats("keys", keys, b, c), Queue: n.floats("queue", queue, q, c),
				Cols: n.scalarInt("cols", at.cols), Pointer: n.scalarInt("pointer", at.pointer)},
		}.Build()
		got, grads := n.lossAndGrads(loss, f)
		near(t, fmt.Sprintf("loss at %+v", at), got, oracle(), 1e-5)
		nearAll(t, "gradient", grads[0], fdGrad(query, oracle), 1e-3)
		right := 0.0
		for i, row := range scores(query, pool[:at.cols*c], c, tau) {
			if slices.Max(row) == row[own[i]] && row[own[i]] > 0 { // columns that do not exist are 0
				right += 1. / b
			}
		}
		if a := n.run(accuracy)[0].F32[0]; !(math.Abs(float64(a)-right) <= 1e-6) {
			t.Errorf("accuracy %v, want %v", a, right)
		}
	}
}

// swavCase is a swapped prediction with its graph, which geodesic scores go through.
type swavCase struct {
	b, q, k, c, m, rows, count int
	epsilon, tau               float64
	views                      [2][]float32
	prototypes, queue          []float32
	centres, paths             []float32
}

func newSwavCase(r *rand.Rand) *swavCase {
	s := &swavCase{b: 4, q: 6, k: 5, c: 4, m: 3, rows: 5, count: 3, epsilon: .2, tau: .1}
	s.views = [2][]float32{unitRows(r, s.b, s.c), unitRows(r, s.b, s.c)}
	s.prototypes, s.queue, s.centres = unitRows(r, s.k, s.c), unitRows(r, s.q, s.c), unitRows(r, s.m, s.c)
	inf := float32(math.Inf(1))
	s.paths = []float32{0, 1.1, inf, 1.1, 0, inf, inf, inf, 0}
	return s
}

func (s *swavCase) dot(x, y []float32) (d float64) {
	for i := range x {
		d += float64(x[i]) * float64(y[i])
	}
	return d
}

// nearest is the nearest centre of x and the angle to it.
func (s *swavCase) nearest(x []float32) (best int, angle float64) {
	top := math.Inf(-1)
	for m := range s.count {
		if d := s.dot(x, s.centres[m*s.c:][:s.c]); d > top {
			best, top = m, d
		}
	}
	return best, math.Acos(top)
}

// scores of n rows z with the prototypes: eq. 3 from feature to prototype, cut at 4 pi.
func (s *swavCase) scores(z []float32, n int, geodesic bool) [][]float64 {
	out := make([][]float64, n)
	for i := range n {
		x := z[i*s.c:][:s.c]
		from, leg := s.nearest(x)
		for k := range s.k {
			p := s.prototypes[k*s.c:][:s.c]
			if !geodesic || s.count == 0 {
				out[i] = append(out[i], s.dot(x, p))
				continue
			}
			to, reach := s.nearest(p)
			theta := leg + float64(s.paths[from*s.m+to]) + reach
			out[i] = append(out[i], math.Cos(min(theta, 4*math.Pi)/4))
		}
	}
	return out
}

// codes of a view's scores, balanced with those of the queue: the rounds of Sinkhorn
// and Knopp as SwAV's appendix has them.
func (s *swavCase) codes(view [][]float64, geodesic bool) [][]float64 {
	all := append(slices.Clone(view), s.scores(s.queue, s.rows, geodesic)...)
	q := make([][]float64, len(all))
	for i, row := range all {
		for _, v := range row {
			q[i] = append(q[i], math.Exp(v/s.epsilon))
		}
	}
	for range 3 {
		for k := range s.k {
			var sum float64
			for i := range q {
				sum += q[i][k]
			}
			for i := range q {
				q[i][k] /= sum * float64(s.k)
			}
		}
		for i := range q {
			var sum float64
			for _, v := range q[i] {
				sum += v
			}
			for k := range q[i] {
				q[i][k] /= sum
			}
		}
	}
	return q[:s.b]
}

// loss with codes that are given, and dL/ds of both views.
func (s *swavCase) loss(scores, codes [2][][]float64) (loss float64, slopes [2][][]float64) {
	for view := range 2 {
		for i, row := range scores[view] {
			z := make([]float64, s.k)
			for k, v := range row {
				z[k] = v / s.tau
			}
			p, log := softmax(z)
			slope := make([]float64, s.k)
			for k, code := range codes[1-view][i] {
				loss -= .5 * code * log[k] / float64(s.b)
				slope[k] = .5 * (p[k] - code) / s.tau / float64(s.b)
			}
			slopes[view] = append(slopes[view], slope)
		}
	}
	return loss, slopes
}

// TestSwappedPredictionAgainstOracle: loss and gradients by cosine, by geodesics, and by
// geodesics before there is a graph. With geodesics prototypes have the gradient of
// cosines, and features the one of their mode; no prototype is a positive whose angle counts.
func TestSwappedPredictionAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	for trial := range 12 {
		s := newSwavCase(r)
		geodesic := trial%3 > 0
		if trial%3 == 2 {
			s.count = 0
		}
		straight := trial%2 == 0
		n := newBench(t)
		score := cosineAt(n, float32(s.tau))
		if geodesic {
			score.Terms = []Term{{Kind: scoring.Geodesic, Weight: 1, Paths: Paths{Entries: 1, StraightThrough: straight, Limit: 4 * math.Pi, DirectPositives: trial >= 6}}}
		}
		views := [2]*gorgonia.Node{n.floats("view 1", s.views[0], s.b, s.c), n.floats("view 2", s.views[1], s.b, s.c)}
		prototypes := n.floats("prototypes", s.prototypes, s.k, s.c)
		p := SwappedPrediction{
			Views: views, Prototypes: prototypes, Queue: n.floats("queue", s.queue, s.q, s.c), Rows: n.scalarInt("rows", s.rows),
			Score: score, Epsilon: float32(s.epsilon), Iterations: 3,
			Constants: SwappedConstants{One: n.floats("one", []float32{1}), Minus: n.floats("minus", []float32{-1}),
				First: n.scalarInt("first", 0), Zeros: n.ints("zeros", make([]int32, s.b)...)},
		}
		if geodesic {
			p.Centres, p.Paths, p.Count = n.floats("centres", s.centres, s.m, s.c), n.floats("paths", s.paths, s.m, s.m), n.scalarInt("count", s.count)
		}
		got, grads := n.lossAndGrads(p.Build(), views[0], views[1], prototypes)

		var all, codes [2][][]float64
		for v := range 2 {
			all[v] = s.scores(s.views[v], s.b, geodesic)
			codes[v] = s.codes(all[v], geodesic)
		}
		want, slopes := s.loss(all, codes)
		what := fmt.Sprintf("trial %d: ", trial)
		near(t, what+"loss", got, want, 1e-4)
		forPrototypes := make([]float64, s.k*s.c)
		for v := range 2 {
			forView := make([]float64, s.b*s.c)
			for i, row := range slopes[v] {
				for k, slope := range row {
					for d := range s.c {
						forPrototypes[k*s.c+d] += slope * float64(s.views[v][i*s.c+d])
						forView[i*s.c+d] += slope * float64(s.prototypes[k*s.c+d])
					}
				}
			}
			if geodesic && s.count > 0 && !straight { // the strict mode
				forView = fdGrad(s.views[v], func() float64 {
					at := all
					at[v] = s.scores(s.views[v], s.b, true)
					l, _ := s.loss(at, codes)
					return l
				})
			}
			nearAll(t, what+"gradient of a view", grads[v], forView, 2e-3)
		}
		nearAll(t, what+"gradient of the prototypes", grads[2], forPrototypes, 1e-3)
	}
}

// TestMultiCropAgainstOracle: every view but its own predicts the code of one of the two, with equal weights (Caron et al. 2020,
// section 3.2), and gradients follow.
func TestMultiCropAgainstOracle(t *testing.T) {
	const v = 3
	r := rand.New(rand.NewPCG(7, 3))
	s, n := newSwavCase(r), newBench(t)
	small := unitRows(r, s.b*v, s.c)
	views := [2]*gorgonia.Node{n.floats("view 1", s.views[0], s.b, s.c), n.floats("view 2", s.views[1], s.b, s.c)}
	crops, prototypes := n.floats("crops", small, s.b*v, s.c), n.floats("prototypes", s.prototypes, s.k, s.c)
	images := make([]int32, s.b*v)
	for i := range images {
		images[i] = int32(i / v)
	}
	loss := SwappedPrediction{
		Views: views, Crops: crops, Prototypes: prototypes, Queue: n.floats("queue", s.queue, s.q, s.c), Rows: n.scalarInt("rows", s.rows),
		Score: cosineAt(n, float32(s.tau)), Epsilon: float32(s.epsilon), Iterations: 3,
		Constants: SwappedConstants{One: n.floats("one", []float32{1}), Minus: n.floats("minus", []float32{-1}), First: n.scalarInt("first", 0), Zeros: n.ints("zeros", make([]int32, s.b)...),
			CropImages: n.ints("images", images...), CropZeros: n.ints("crop zeros", make([]int32, s.b*v)...)},
	}.Build()
	got, grads := n.lossAndGrads(loss, views[0], crops)
	var codes [2][][]float64
	for k := range codes {
		codes[k] = s.codes(s.scores(s.views[k], s.b, false), false)
	}
	want := func() (sum float64) {
		predicted := func(row, code []float64) {
			z := make([]float64, s.k)
			for k, x := range row {
				z[k] = x / s.tau
			}
			_, log := softmax(z)
			for k, c := range code {
				sum -= c * log[k] / float64(2*(1+v)*s.b)
			}
		}
		large, all := [2][][]float64{s.scores(s.views[0], s.b, false), s.scores(s.views[1], s.b, false)}, s.scores(small, s.b*v, false)
		for k := range 2 {
			for i := range s.b {
				predicted(large[1-k][i], codes[k][i])
				for c := range v {
					predicted(all[i*v+c], codes[k][i])
				}
			}
		}
		return sum
	}
	near(t, "loss", got, want(), 1e-4)
	nearAll(t, "gradient of the first view", grads[0], fdGrad(s.views[0], want), 2e-3)
	nearAll(t, "gradient of the crops", grads[1], fdGrad(small, want), 2e-3)
}
