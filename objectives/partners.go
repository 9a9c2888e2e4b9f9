package objectives

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/internal/rng"
	"gorgonia.org/gorgonia"
)

// Partners says which other row of a batch each row is told from.
type Partners struct {
	Half bool    // the one half a batch away, as in Vokenization, else one in a random order
	Prob float64 // that a row has one
}

// partners are inputs, drawn anew for every step: the row of the batch that each row is told from, (B) int32, and
// whether it has one, 1 or 0 (B). A row without one, as all are in a batch of one, names itself. Rows of
// one id are not told from each other, where the step has ids. In a step of Whole each process draws the same for the
// rows of all.
func (s *Step) partners(name string, p Partners) (index, has *gorgonia.Node) {
	rows, mask, all := make([]int32, s.Rows), make([]float32, s.Rows), make([]int32, s.Rows)
	s.OnFill(func(f *feed.Step) error {
		var ids []int32
		if s.IDs != nil {
			var err error
			if ids, err = s.ofRanks(all[:0], f.Batch.Ints(batch.IDs)); err != nil {
				return err
			}
		}
		p.draw(rng.New(s.Seed, rng.Negatives+"/"+name, f.Stream()), rows, mask, ids)
		return nil
	})
	return s.SharedInts(name, rows, s.Rows), s.SharedFloats(name+" there", mask, s.Rows)
}

// draw sets the partner of each row and whether it has one. The rows stand in a circle, and a row takes the first that
// is not of its id from the next one on, or from half a circle on: with ids of their own, each is the partner of one.
func (p Partners) draw(r *rand.Rand, rows []int32, has []float32, ids []int32) {
	n, from := len(rows), 1
	circle := r.Perm(n)
	if p.Half {
		from = n / 2
		for i := range circle {
			circle[i] = i
		}
	}
	for k, i := range circle {
		rows[i], has[i] = int32(i), 0
		if r.Float64() >= p.Prob {
			continue
		}
		for step := range n {
			if j := circle[(k+from+step)%n]; j != i && (ids == nil || ids[j] != ids[i]) {
				rows[i], has[i] = int32(j), 1
				break
			}
		}
	}
}
