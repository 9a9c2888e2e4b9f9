package geodesic

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/space"
)

// counting is a rank that counts exchanges.
type counting struct {
	parallel.Group
	gathers, values int
}

func (c *counting) Gather(dst, x []float32) ([]float32, error) {
	c.gathers++
	c.values += len(x)
	return c.Group.Gather(dst, x)
}

// TestShare: ranks that share a build have the graph of one process, from several threads, a warm start and after a graph of
// other points; each assigns a part of the points.
func TestShare(t *testing.T) {
	const n, c = 3000, 32
	x := mixture(n, c, 60, .7, rand.New(rand.NewPCG(5, 5)))
	other := mixture(n, c, 9, .3, rand.New(rand.NewPCG(6, 6)))
	for _, o := range []Options{
		{Layers: []int{100}}, {Layers: []int{10, 100}, WarmStart: true}, {Layers: []int{4, 12, 100}, Split: true}, {Layers: []int{150}, Init: InitRows},
		{Layers: []int{100}, Space: space.Space{Euclid: true}, Limit: 10},
	} {
		want, _ := build(t, engine(t, 1), other, n, c, o, 8)
		check.Get(want.Build(engine(t, 1), x, rand.New(rand.NewPCG(2, 7))))(t)
		for _, ranks := range []int{2, 3} {
			var wg sync.WaitGroup
			graphs, groups, errs := make([]*Graph, ranks), make([]*counting, ranks), make([]error, ranks)
			for i, r := range paralleltest.Ranks(ranks) {
				groups[i] = &counting{Group: r}
				graphs[i], _ = build(t, engine(t, 1), other, n, c, o, 8)
				graphs[i].Share(groups[i])
				graphs[i].cluster.share.least = 1 << 16
				e := engine(t, 1+i)
				wg.Go(func() { _, errs[i] = graphs[i].Build(e, x, rand.New(rand.NewPCG(2, 7))) })
			}
			wg.Wait()
			for i, g := range graphs {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
				equal(t, g, want)
				if k := groups[i]; k.gathers < 5 || k.values > k.gathers*n*2/3 {
					t.Errorf("%+v: rank %d of %d gave %d points in %d exchanges", o, i, ranks, k.values, k.gathers)
				}
			}
		}
	}
}

// TestAShareThatFails is the error of the build.
func TestAShareThatFails(t *testing.T) {
	const n, c = 500, 16
	x := mixture(n, c, 9, .3, rand.New(rand.NewPCG(6, 6)))
	g := check.Get(New(n, c, Options{Layers: []int{50}}))(t)
	ranks := paralleltest.Ranks(2)
	lost := errors.New("the line is dead")
	ranks[0].Fail = lost
	go ranks[1].GatherInts(nil, nil)
	g.Share(ranks[0])
	g.cluster.share.least = 0
	if _, err := g.Build(engine(t, 1), x, rand.New(rand.NewPCG(2, 7))); !errors.Is(err, lost) || !strings.HasPrefix(err.Error(), "geodesic: ") {
		t.Errorf("got %v", err)
	}
}
