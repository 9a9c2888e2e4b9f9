package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/space"
)

// newTestGraphs returns graphs over a queue of 12 rows of 4 channels.
func newTestGraphs(t testing.TB, period, lag int) (*Graphs, *Queue) {
	t.Helper()
	cfg := config.Default()
	cfg.Objective.Geodesic.Layers = []int{2, 5}
	cfg.Objective.Geodesic.PeriodSteps, cfg.Objective.Geodesic.LagSteps = period, lag
	q := newQueue(queueArgs{size: 12, dim: 4, spheres: 1, seed: 3})
	g := check.Get(newGraphs(cfg, space.Space{Spheres: 1}, q, newEngine(t)))(t)
	q.graphs = g
	t.Cleanup(func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	})
	return g, q
}

// push writes n new rows.
func push(t testing.TB, q *Queue, r *rand.Rand, n int) {
	t.Helper()
	x := make([]float32, 2*n*q.dim)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := range 2 * n {
		normalize(x[i*q.dim:][:q.dim])
	}
	check.OK(t, q.Push(Keys{Image: x[:n*q.dim], Text: x[n*q.dim:]}, make([]int32, n)))
}

// checkOwners fails unless every row of both rings hangs at its nearest centre.
func checkOwners(t *testing.T, step int, g *Graphs) {
	t.Helper()
	for name, x := range map[string]struct {
		graph graphLike
		rows  []float32
		owner []int32
		reach []float32
	}{
		"image": {graphLike{g.Image.Centres, g.Image.Paths, g.Image.Used}, g.queue.Image, g.Image.Owner, g.Image.Reach},
		"text":  {graphLike{g.Text.Centres, g.Text.Paths, g.Text.Used}, g.queue.Text, g.Text.Owner, g.Text.Reach},
	} {
		for j, owner := range x.owner {
			k, angle := x.graph.nearest(x.rows[j*g.queue.dim:][:g.queue.dim])
			if int(owner) != k || !(math.Abs(angle-float64(x.reach[j])) <= 2e-3) {
				t.Errorf("step %d: row %d of the %s queue hangs at %d (%v), its nearest centre is %d (%v)", step, j, name, owner, x.reach[j], k, angle)
			}
		}
	}
}

// TestGraphsAreRebuiltOnTime: the first pair with the full queue, then one every period,
// in use after the lag. Rows that enter meanwhile, in batches of 5 that wrap around, hang
// at their nearest centre of the graph in use.
func TestGraphsAreRebuiltOnTime(t *testing.T) {
	for _, c := range []struct {
		period, lag int
		begun       []int // of the graphs in use at steps 0 to 9
	}{
		{4, 0, []int{-1, -1, -1, 3, 3, 3, 3, 7, 7, 7}},
		{4, 2, []int{-1, -1, -1, 3, 3, 3, 3, 3, 3, 7}},
		{1, 0, []int{-1, -1, -1, 3, 4, 5, 6, 7, 8, 9}},
		{3, 2, []int{-1, -1, -1, 3, 3, 3, 3, 3, 6, 6}},
	} {
		g, q := newTestGraphs(t, c.period, c.lag)
		r := rand.New(rand.NewPCG(1, 0))
		for step, begun := range c.begun {
			check.OK(t, g.before(step))
			if g.Begun != begun {
				t.Errorf("period %d, lag %d: step %d reads the graphs of step %d, want %d", c.period, c.lag, step, g.Begun, begun)
			}
			if g.Begun >= 0 {
				checkOwners(t, step, g)
			}
			g.activate(true)
			if g.active() != (begun >= 0) {
				t.Errorf("step %d: active %t", step, g.active())
			}
			g.activate(false)
			if g.active() {
				t.Errorf("step %d: graphs are read without the queue", step)
			}
			push(t, q, r, 5)
		}
	}
}

// TestARebuildBesideTheStepsSeesItsCopy: the graph that is switched in is that of the
// queue when it was begun, whatever entered since.
func TestARebuildBesideTheStepsSeesItsCopy(t *testing.T) {
	late, q := newTestGraphs(t, 4, 3)
	soon, p := newTestGraphs(t, 4, 0)
	r, s := rand.New(rand.NewPCG(2, 0)), rand.New(rand.NewPCG(2, 0))
	for step := range 8 {
		for _, g := range []*Graphs{late, soon} {
			check.OK(t, g.before(step))
		}
		push(t, q, r, 5)
		push(t, p, s, 5)
	}
	if slices.Equal(late.Image.Centres, soon.Image.Centres) {
		t.Error("the rebuild is in use before its time")
	}
	want := slices.Clone(soon.Image.Centres) // begun at step 7
	for step := 8; step <= 10; step++ {
		check.OK(t, late.before(step))
		push(t, q, r, 5)
	}
	for i, v := range late.Image.Centres { // the two builds have engines of their own
		if !(math.Abs(float64(v-want[i])) <= 1e-5) {
			t.Fatalf("centre value %d is %v, of the queue at the beginning %v", i, v, want[i])
		}
	}
	checkOwners(t, 10, late)
}

// TestBadRowsFailARebuild: a row that is not a unit vector is named, in the step and
// beside it.
func TestBadRowsFailARebuild(t *testing.T) {
	for _, lag := range []int{0, 2} {
		g, q := newTestGraphs(t, 4, lag)
		r := rand.New(rand.NewPCG(3, 0))
		push(t, q, r, 12)
		check.OK(t, g.before(0))
		q.Text[5*4] = float32(math.NaN())
		var err error
		for step := 4; step <= 4+lag && err == nil; step++ {
			err = g.before(step)
		}
		if err == nil {
			t.Errorf("lag %d: no error", lag)
		} else {
			t.Log(err)
		}
		if g.Begun != 0 {
			t.Errorf("lag %d: graphs of step %d are in use", lag, g.Begun)
		}
		g.Reset() // close would report the error of the rebuild
	}
}

// TestTruncatedFollowsTheLimit: the share of truncated paths in the log is that of the
// limit which the scores are cut at. Angles in 4 dimensions are above 0.01 pi and, in so
// small a graph, below 1,000 pi.
func TestTruncatedFollowsTheLimit(t *testing.T) {
	for _, limit := range []float64{0.01, 1000} {
		cfg := config.Default()
		cfg.Objective.Geodesic.Layers, cfg.Objective.Geodesic.LimitPi = []int{5}, limit
		q := newQueue(queueArgs{size: 12, dim: 4, spheres: 1, seed: 3})
		g := check.Get(newGraphs(cfg, space.Space{Spheres: 1}, q, newEngine(t)))(t)
		q.graphs = g
		push(t, q, rand.New(rand.NewPCG(1, 2)), 12)
		check.OK(t, g.before(0))
		got := g.Figures()["graph/image/truncated"]
		if limit < 1 && got < 0.5 || limit > 1 && got != 0 {
			t.Errorf("limit of %v pi: a share of %v is truncated", limit, got)
		}
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}
}
