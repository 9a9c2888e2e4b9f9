package encoders

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
)

// TestRegionParameters pins names and shapes, which are the keys of checkpoints.
func TestRegionParameters(t *testing.T) {
	for want, tower := range map[string]RegionTower{
		`fc/bias (4)
fc/weight (4, 5)`: {},
		`fc/bias (4)
fc/weight (4, 5)
fc1/bias (2)
fc1/weight (2, 5)
fc2/weight (4, 2)
pool/forward/bias_hh (96)
pool/forward/bias_ih (96)
pool/forward/weight_hh (96, 32)
pool/forward/weight_ih (96, 32)
pool/reverse/bias_hh (96)
pool/reverse/bias_ih (96)
pool/reverse/weight_hh (96, 32)
pool/reverse/weight_ih (96, 32)
pool/scores/weight (1, 32)`: {Encoder: RegionsMLP, Pool: PoolGPO},
		`fc/bias (4)
fc/weight (4, 5)
graph/00/g/bias (4)
graph/00/g/weight (4, 4)
graph/00/gssf/weight (4)
graph/00/phi/bias (4)
graph/00/phi/weight (4, 4)
graph/00/theta/bias (4)
graph/00/theta/weight (4, 4)
graph/00/w/bias (4)
graph/00/w/weight (4, 4)
pool/bias_hh (12)
pool/bias_ih (12)
pool/weight_hh (12, 4)
pool/weight_ih (12, 4)`: {Encoder: RegionsGraph, Layers: 1, Metric: "diag", Pool: PoolGRU},
	} {
		s := newStore(0)
		tower.Regions, tower.In, tower.Width = 3, 5, 4
		tower.Encode(&Context{}, NewScope(s), Inputs{batch.Regions: s.floats("regions", 2, 3, 5), batch.RegionLengths: s.ints("lengths", 2)}, Want{Classes: true})
		if got := strings.Join(s.list(), "\n"); got != want {
			t.Errorf("%+v:\n%s", tower, got)
		}
	}
}
