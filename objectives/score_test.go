package objectives

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/geodesic"
	"github.com/geoalign/geoalign/objectives/scoring"
	"gorgonia.org/gorgonia"
)

// geodesicCase is a batch that enters a queue with graphs over it. Image and text queue
// have graphs of their own.
type geodesicCase struct {
	*contrastCase
	pointer               int
	imageGraph, textGraph *geodesic.Graph
	score, target         measure
	tau, ownTau           float64 // of cosine and of geodesic scores
	weigh                 float64
	negatives             *measure
}

// measure is a cosine, or a geodesic with a share of it.
type measure struct {
	Geodesic bool
	Mix      float32
	Paths    Paths
}

// score is m with a temperature.
func (m measure) score(tau *gorgonia.Node) Score {
	s := cosineScore(Temperature{Node: tau})
	if !m.Geodesic {
		return s
	}
	s.Terms = []Term{{Kind: scoring.Geodesic, Weight: m.Mix, Paths: m.Paths}}
	if m.Mix != 1 {
		s.Terms = append(s.Terms, Term{Kind: scoring.Cosine, Weight: 1 - m.Mix})
	}
	return s
}

func newGeodesicCase(t testing.TB, seed uint64, b, n, c, pointer int) *geodesicCase {
	k := &geodesicCase{contrastCase: newContrastCase(seed, b, n, n, c), pointer: pointer, tau: .3, ownTau: .15}
	r := rand.New(rand.NewPCG(seed, 1))
	for _, x := range []struct {
		g    **geodesic.Graph
		rows []float32
	}{{&k.imageGraph, k.imageQueue}, {&k.textGraph, k.textQueue}} {
		g := check.Get(geodesic.New(n, c, geodesic.Options{Layers: []int{2, 6}, Neighbours: 2}))(t)
		check.Get(g.Build(engine, x.rows, r))(t)
		*x.g = g
	}
	return k
}

// build returns the contrast and the inputs that gradients are asked for.
func (k *geodesicCase) build(n *bench) (Contrast, gorgonia.Nodes) {
	tau, own := n.floats("tau", []float32{float32(k.tau)}), n.floats("own tau", []float32{float32(k.ownTau)})
	m := MomentumContrast{
		Image: n.floats("image", k.image, k.b, k.c), Text: n.floats("text", k.text, k.b, k.c),
		ImageM: n.floats("image m", k.imageM, k.b, k.c), TextM: n.floats("text m", k.textM, k.b, k.c),
		Alpha: n.floats("alpha", []float32{float32(k.alpha)}), WeighPaths: k.target.Paths,
	}
	with := func(x measure) Score {
		if x.Geodesic {
			return x.score(own)
		}
		return x.score(tau)
	}
	m.Score, m.Target = with(k.score), with(k.target)
	if k.negatives != nil {
		by := with(*k.negatives)
		m.Negatives = &by
	}
	if k.weigh != 0 {
		m.Weigh = n.floats("weigh", []float32{float32(k.weigh)})
	}
	pointer := n.scalarInt("pointer", k.pointer)
	bank := func(name string, keys *gorgonia.Node, queue []float32, g *geodesic.Graph) *Bank {
		return &Bank{Keys: keys, Queue: n.floats(name+" queue", queue, k.q, k.c), Pointer: pointer, Cols: n.scalarInt(name+" cols", k.q), Graph: &Graph{
			Centres: n.floats(name+" centres", g.Centres, 6, k.c), Paths: n.floats(name+" paths", g.Paths, 6, 6),
			Owner: n.ints(name+" owner", g.Owner...), Reach: n.floats(name+" reach", g.Reach, k.q), Count: n.scalarInt(name+" count", g.Used),
		}}
	}
	m.ImageBank, m.TextBank = bank("image", m.ImageM, k.imageQueue, k.imageGraph), bank("text", m.TextM, k.textQueue, k.textGraph)
	if k.ids != nil {
		m.Positives = Positives{RowIDs: n.ints("row ids", k.ids...), ColIDs: n.ints("col ids", k.columnIDs()...)}
	} else {
		labels := make([]int32, k.b)
		for i := range labels {
			labels[i] = int32((k.pointer + i) % k.q)
		}
		m.Positives.Labels = n.ints("labels", labels...)
	}
	return m.Build(), gorgonia.Nodes{m.Image, m.Text, tau, own}
}

// columnIDs are the ids of the queue once the batch has entered it.
func (k *geodesicCase) columnIDs() []int32 {
	ids := append([]int32(nil), k.queueIDs...)
	for i, id := range k.ids {
		ids[(k.pointer+i)%k.q] = id
	}
	return ids
}

// pool is a queue that a batch of keys has entered.
func (k *geodesicCase) pool(keys, queue []float32) [][]float64 {
	var rows [][]float64
	for j := range k.q {
		rows = append(rows, wide(queue[j*k.c:][:k.c]))
	}
	for i := range k.b {
		rows[(k.pointer+i)%k.q] = wide(keys[i*k.c:][:k.c])
	}
	return rows
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func dot(x, y []float64) (s float64) {
	for d, v := range x {
		s += v * y[d]
	}
	return s
}

func angleOf(x, y []float64) float64 { return math.Acos(min(max(dot(x, y), -1+1e-6), 1-1e-6)) }

// nearest returns the M centres of g nearest to x, the nearest first.
func nearest(g *geodesic.Graph, x []float64, entries int) []int {
	var list []int
	for range min(entries, g.Used) {
		best := -1
		for k := range g.Used {
			free := true
			for _, l := range list {
				free = free && l != k
			}
			if free && (best < 0 || dot(x, wide(g.Centres[k*len(x):][:len(x)])) > dot(x, wide(g.Centres[best*len(x):][:len(x)]))) {
				best = k
			}
		}
		list = append(list, best)
	}
	return list
}

// geodesicScore is the definition for one pair: eq. 3 with the modes of Paths.
func geodesicScore(g *geodesic.Graph, p Paths, f, x []float64, positive bool) float64 {
	centre := func(k int) []float64 { return wide(g.Centres[k*len(f):][:len(f)]) }
	owner := nearest(g, x, 1)[0]
	var sum, theta float64
	for i, m := range nearest(g, f, p.Entries) {
		d := angleOf(f, centre(m)) + float64(g.Paths[m*6+owner])
		if i == 0 {
			theta = d
		}
		sum += math.Exp(-d / float64(p.Softness))
	}
	if p.Entries > 1 {
		theta = -float64(p.Softness) * math.Log(sum)
	}
	theta += angleOf(x, centre(owner))
	switch own := nearest(g, f, 1)[0]; {
	case p.SameCluster && own == owner:
		theta = angleOf(f, x)
	case p.DirectPositives && positive:
		theta = min(theta, angleOf(f, x))
	}
	limit := float64(p.Limit)
	return math.Cos(min(theta, limit) * math.Pi / limit)
}

// logits are those of rows f against a pool, by score s.
func (k *geodesicCase) logits(s measure, f []float32, pool [][]float64, g *geodesic.Graph, tau, own float64) [][]float64 {
	hard := k.hard()
	out := make([][]float64, k.b)
	for i := range out {
		x := wide(f[i*k.c:][:k.c])
		for j := range pool {
			v := dot(x, pool[j]) / tau
			if s.Geodesic {
				mix := float64(s.Mix)
				v = (mix*geodesicScore(g, s.Paths, x, pool[j], hard[i][j] > 0) + (1-mix)*dot(x, pool[j])) / own
			}
			out[i] = append(out[i], v)
		}
	}
	return out
}

func (k *geodesicCase) hard() [][]float64 {
	if k.ids != nil {
		return byID(k.ids, k.columnIDs())
	}
	out := make([][]float64, k.b)
	for i := range out {
		out[i] = make([]float64, k.q)
		out[i][(k.pointer+i)%k.q] = 1
	}
	return out
}

// oracle computes the loss pair by pair; the teacher keeps the temperatures of k.
func (k *geodesicCase) oracle(tau, own float64) float64 {
	direction := func(f, m []float32, pool [][]float64, g *geodesic.Graph) float64 {
		s := k.logits(k.score, f, pool, g, tau, own)
		if k.weigh != 0 {
			w := k.logits(measure{Geodesic: true, Mix: 1, Paths: k.target.Paths}, m, pool, g, 1, 1)
			for i := range s {
				for j := range s[i] {
					s[i][j] += k.weigh * w[i][j]
				}
			}
		}
		return softLoss(s, k.hard(), k.logits(k.target, m, pool, g, k.tau, k.ownTau), k.alpha)
	}
	texts, images := k.pool(k.textM, k.textQueue), k.pool(k.imageM, k.imageQueue)
	return (direction(k.image, k.imageM, texts, k.textGraph) + direction(k.text, k.textM, images, k.imageGraph)) / 2
}

func geodesicOf(mode string, mix float32) measure {
	return measure{Geodesic: true, Mix: mix, Paths: ParsePaths(mode, 3, 0.1, 4*math.Pi, false)}
}

// TestGeodesicContrastAgainstOracle covers every mode whose gradient is that of its
// score, mixed scores, a teacher with another score than the student, weights and ids,
// with the batch across the end of the ring.
func TestGeodesicContrastAgainstOracle(t *testing.T) {
	direct := geodesicOf("strict", 1)
	direct.Paths.DirectPositives = true
	short := geodesicOf("soft_entry", 1)
	short.Paths.Limit = 1.2 // cuts most paths
	cosine := measure{Mix: 1, Paths: ParsePaths("soft_entry", 3, 0.1, 4*math.Pi, false)}
	for name, c := range map[string]struct {
		score, target measure
		weigh         float64
		ids           bool
	}{
		"strict":                    {score: geodesicOf("strict", 1), target: geodesicOf("strict", 1)},
		"same cluster":              {score: geodesicOf("same_cluster", 1), target: geodesicOf("same_cluster", 1)},
		"soft entry":                {score: geodesicOf("soft_entry", 1), target: geodesicOf("soft_entry", 1)},
		"same cluster, soft entry":  {score: geodesicOf("same_cluster+soft_entry", 1), target: geodesicOf("same_cluster+soft_entry", 1), ids: true},
		"direct positives":          {score: direct, target: direct},
		"direct positives by id":    {score: direct, target: direct, ids: true},
		"cut":                       {score: short, target: short},
		"mixed":                     {score: geodesicOf("same_cluster", .3), target: geodesicOf("same_cluster", .3)},
		"cosine, geodesic teacher":  {score: cosine, target: geodesicOf("same_cluster", 1)},
		"geodesic, teacher cosine":  {score: geodesicOf("soft_entry", 1), target: cosine, ids: true},
		"cosine, weighed":           {score: cosine, target: cosine, weigh: -1.5},
		"cosine, weighed, of an id": {score: cosine, target: cosine, weigh: -1.5, ids: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newGeodesicCase(t, 8, 4, 20, 6, 18)
			k.score, k.target, k.weigh = c.score, c.target, c.weigh
			if c.ids {
				k.ids = []int32{7, 3, 7, 9}
				k.queueIDs = []int32{3, 3, 5, 7, -100, 9, 1, 2, 7, 4, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8}
			}
			n := newBench(t)
			built, wrt := k.build(n)
			loss, grads := n.lossAndGrads(built.Loss, wrt[:2]...)
			near(t, "loss", loss, k.oracle(k.tau, k.ownTau), 1e-5)
			f := func() float64 { return k.oracle(k.tau, k.ownTau) }
			nearAll(t, "gradient of image", grads[0], fdGrad(k.image, f), 1e-3)
			nearAll(t, "gradient of text", grads[1], fdGrad(k.text, f), 1e-3)

			n = newBench(t)
			built, wrt = k.build(n)
			const h = 1e-4
			temperature, want := wrt[2], (k.oracle(k.tau+h, k.ownTau)-k.oracle(k.tau-h, k.ownTau))/(2*h)
			if c.score.Geodesic {
				temperature, want = wrt[3], (k.oracle(k.tau, k.ownTau+h)-k.oracle(k.tau, k.ownTau-h))/(2*h)
			}
			_, grads = n.lossAndGrads(built.Loss, temperature)
			nearAll(t, "gradient of the temperature", grads[0], []float64{want}, 1e-4)
		})
	}
}

// TestStraightThroughGradient is its definition: of s = sg(s_geo - s_cos) + s_cos the
// gradient for f_i is sum_j (p_ij - y_ij)/tau x_j, p by geodesic scores.
func TestStraightThroughGradient(t *testing.T) {
	for _, mode := range []string{"straight_through", "same_cluster+straight_through", "straight_through+soft_entry"} {
		k := newGeodesicCase(t, 9, 4, 20, 6, 18)
		k.score = geodesicOf(mode, 1)
		k.target, k.alpha = k.score, 0
		n := newBench(t)
		built, wrt := k.build(n)
		loss, grads := n.lossAndGrads(built.Loss, wrt[:2]...)
		near(t, mode+": loss", loss, k.oracle(k.tau, k.ownTau), 2e-6)
		for d, x := range []struct {
			f    []float32
			pool [][]float64
			g    *geodesic.Graph
		}{{k.image, k.pool(k.textM, k.textQueue), k.textGraph}, {k.text, k.pool(k.imageM, k.imageQueue), k.imageGraph}} {
			want := make([]float64, len(x.f))
			hard := k.hard()
			for i, row := range k.logits(k.score, x.f, x.pool, x.g, k.tau, k.ownTau) {
				p, _ := softmax(row)
				for j := range p {
					for ch, v := range x.pool[j] {
						want[i*k.c+ch] += (p[j] - hard[i][j]) * v / k.ownTau / float64(2*k.b)
					}
				}
			}
			nearAll(t, mode+": gradient", grads[d], want, 1e-4)
		}
	}
}

// TestNegativesReadTheBatchColumns: what matching draws its negatives by are the columns
// of the batch, wherever in the ring it stands.
func TestNegativesReadTheBatchColumns(t *testing.T) {
	for _, pointer := range []int{0, 7, 16, 18} {
		for _, kind := range []string{"score", "cosine", "geodesic"} {
			k := newGeodesicCase(t, 10, 4, 20, 6, pointer)
			k.score = geodesicOf("soft_entry", 1)
			k.target = geodesicOf("same_cluster", 1)
			score, image, text := k.score, k.image, k.text
			switch kind {
			case "cosine":
				score = measure{}
				k.negatives = &score
			case "geodesic":
				score, image, text = k.target, k.imageM, k.textM
				k.negatives = &score
			}
			n := newBench(t)
			built, _ := k.build(n)
			out := n.run(built.I2T, built.T2I)
			for d, all := range [][][]float64{
				k.logits(score, image, k.pool(k.textM, k.textQueue), k.textGraph, k.tau, k.ownTau),
				k.logits(score, text, k.pool(k.imageM, k.imageQueue), k.imageGraph, k.tau, k.ownTau),
			} {
				var want []float64
				for _, row := range all {
					for j := range k.b {
						want = append(want, row[(pointer+j)%k.q])
					}
				}
				nearAll(t, kind+" logits", out[d].F32, want, 1e-4)
			}
		}
	}
}

// TestTheGradientTrap: features that are about aligned, with graphs of
// 6 centres over a queue of 512. By eq. 3 alone every row moves along the line to its
// one nearest centre; in the default mode the rows move towards their positives.
func TestTheGradientTrap(t *testing.T) {
	const b, n, c = 32, 512, 16
	r := rand.New(rand.NewPCG(11, 0))
	texts := unitRows(r, n+b, c)
	noisy := func(x []float32) []float32 {
		out := make([]float32, len(x))
		for i := 0; i < len(x); i += c {
			var s float64
			for d := range c {
				v := float64(x[i+d]) + .25*r.NormFloat64()/2
				out[i+d] = float32(v)
				s += v * v
			}
			for d := range c {
				out[i+d] = float32(float64(out[i+d]) / math.Sqrt(s))
			}
		}
		return out
	}
	k := &geodesicCase{contrastCase: &contrastCase{
		b: b, q: n, c: c, image: noisy(texts[:b*c]), text: noisy(texts[:b*c]), imageM: texts[:b*c], textM: texts[:b*c],
		imageQueue: noisy(texts[b*c:]), textQueue: texts[b*c:],
	}, pointer: 500, tau: .07, ownTau: .07}
	g := check.Get(geodesic.New(n, c, geodesic.Options{Layers: []int{2, 6}}))(t)
	check.Get(g.Build(engine, k.textQueue, r))(t)
	k.textGraph, k.imageGraph = g, g
	for mode, positive := range map[string]bool{"same_cluster+straight_through+soft_entry": true, "same_cluster+straight_through": true, "straight_through": true, "strict": false} {
		k.score = geodesicOf(mode, 1)
		k.target = k.score
		bench := newBench(t)
		built, wrt := k.build(bench)
		_, grads := bench.lossAndGrads(built.Loss, wrt[0])
		var mean float64
		for i := range b {
			f, down := wide(k.image[i*c:][:c]), make([]float64, c)
			for d := range c {
				down[d] = -float64(grads[0][i*c+d])
			}
			mean += cosine(tangent(down, f), tangent(wide(k.textM[i*c:][:c]), f)) / b
			centre := nearest(g, f, 1)[0]
			along := math.Abs(cosine(tangent(down, f), tangent(wide(g.Centres[centre*c:][:c]), f)))
			if mode == "strict" != (along > .9999) {
				t.Errorf("%s: row %d moves at a cosine of %v to its nearest centre", mode, i, along)
			}
		}
		t.Logf("%s: mean cosine to the positive %.3f", mode, mean)
		if positive && mean < .1 {
			t.Errorf("%s: rows move at a mean cosine of %v to their positives", mode, mean)
		}
	}
}

// tangent returns the part of v at right angles to f.
func tangent(v, f []float64) []float64 {
	out, along := make([]float64, len(v)), dot(v, f)
	for d := range v {
		out[d] = v[d] - along*f[d]
	}
	return out
}

func cosine(x, y []float64) float64 { return dot(x, y) / math.Sqrt(dot(x, x)*dot(y, y)) }
