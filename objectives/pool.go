package objectives

import (
	"fmt"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/internal/rng"
	"gorgonia.org/gorgonia"
)

// Pool is rows of stored features of a side that losses draw from, whether a pair names them
// or not. A *features.Matrix is one.
type Pool interface {
	Rows() int
	Width() int                     // D
	Row(i int, dst []float32) error // reads row i into dst (D)
}

// Pools are those of both sides.
type Pools struct{ Image, Text Pool }

// Draw is an input of n rows (n, D) of a pool, drawn anew for every step with replacement, by
// the seed and the place of the step in the run alone: each process draws its own.
func (s *Step) Draw(name string, p Pool, n int) *gorgonia.Node {
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
