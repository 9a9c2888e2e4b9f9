package encoders

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"gorgonia.org/gorgonia"
)

// TestBatchNormParameters: names are those of PyTorch, scales of graph layers start at 0 and others at 1, statistics at those of
// N(0, 1); training tells of each norm, inference of none.
func TestBatchNormParameters(t *testing.T) {
	for _, c := range []struct {
		tower RegionTower
		want  map[string][]float32
		norms int
	}{
		{RegionTower{Encoder: RegionsMLP}, map[string][]float32{"bn1/weight": {1, 1}, "bn1/bias": {0, 0}, "bn1/running_mean": {0, 0}, "bn1/running_var": {1, 1}}, 1},
		{RegionTower{Encoder: RegionsGraph, Layers: 2}, map[string][]float32{
			"graph/00/bn/weight": {0, 0, 0, 0}, "graph/01/bn/weight": {0, 0, 0, 0}, "graph/00/bn/running_var": {1, 1, 1, 1}, "bn/weight": {1, 1, 1, 1}, "bn/running_mean": {0, 0, 0, 0},
		}, 3},
	} {
		c.tower.Regions, c.tower.In, c.tower.Width, c.tower.BatchNorm = 3, 5, 4, true
		for _, training := range []bool{false, true} {
			s, norms, context := newStore(0), 0, &Context{}
			if training {
				context.Statistics = func(running Moments, of ...Moments) {
					norms++
					for _, n := range []*gorgonia.Node{running.Mean, running.Variance, of[0].Mean, of[0].Variance} {
						if len(n.Shape()) != 1 {
							t.Errorf("%s has shape %v", n.Name(), n.Shape())
						}
					}
				}
			}
			c.tower.Encode(context, NewScope(s), Inputs{batch.Regions: s.floats("regions", 2, 3, 5), batch.RegionLengths: s.ints("lengths", 2)}, Want{Classes: true})
			for name, want := range c.want {
				if !slices.Equal(s.values[name], want) {
					t.Errorf("%s starts at %v, want %v", name, s.values[name], want)
				}
			}
			if w := s.values["graph/00/w/weight"]; c.norms == 3 && w[0] == 0 {
				t.Error("W of a graph layer starts at 0 before a norm whose scale does")
			}
			if want := map[bool]int{true: c.norms}[training]; norms != want {
				t.Errorf("training %v tells of %d norms, want %d", training, norms, want)
			}
		}
	}
}
