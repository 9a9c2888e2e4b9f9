package objectives

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/internal/rng"
	"gorgonia.org/gorgonia"
)

// Draw is an input of n rows (n, D) of a pool, drawn anew for every step with replacement, by
// the seed and the place of the step in the run alone: all processes draw the same.
func (s *Step) Draw(name string, p batch.Pool, n int) *gorgonia.Node {
	d := p.Width()
	return s.Floats(name, func(f *feed.Step, dst []float32) error {
		r := rng.New(s.Seed, rng.Pool+"/"+name, f.Stream())
		for k := range n {
			i := r.IntN(p.Rows())
			if err := p.Row(i, dst[k*d:][:d]); err != nil {
				return fmt.Errorf("%s: row %d: %w", name, i, err)
			}
		}
		return nil
	}, n, d)
}

// gumbel draws from the standard Gumbel distribution.
func gumbel(r *rand.Rand) float32 { return float32(-math.Log(r.ExpFloat64() + 1e-30)) }

// uniform draws from (0, 1).
func uniform(r *rand.Rand) float32 { return (float32(r.Uint32()>>9) + 0.5) / (1 << 23) }
