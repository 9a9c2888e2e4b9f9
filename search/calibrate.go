package search

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/rng"
)

// sample is the queries that recall is measured with, and what Exact finds.
type sample struct {
	queries []float32
	o       Options
	exact   *Hits
}

// calibrate measures recall at rising efforts and chooses the least that reaches the target.
func (b *builder) calibrate() error {
	s, err := b.sample()
	if err != nil {
		return err
	}
	h := &b.header
	h.K, h.Queries = s.o.K, len(s.queries)/h.Width
	if h.bits() {
		if err := b.calibrateRescore(s); err != nil {
			return err
		}
	}
	// Twice the cells until nearly all rows are found, then halving between the last effort
	// that falls short of the target and the first that does not.
	var curve []Point
	measure := func(probes int) (Point, error) {
		recall, err := b.recall(s, probes)
		return Point{probes, recall}, err
	}
	reached := -1 // index of the first point at the target
	for probes := 1; ; probes = min(2*probes, h.Cells) {
		p, err := measure(probes)
		if err != nil {
			return err
		}
		if curve = append(curve, p); reached < 0 && p.Recall >= b.o.Recall {
			reached = len(curve) - 1
		}
		b.o.Progress("recall", probes, h.Cells)
		if probes == h.Cells || reached >= 0 && p.Recall >= enough {
			break
		}
	}
	if reached > 0 {
		low, high := curve[reached-1].Probes, curve[reached]
		for high.Probes-low > max(1, low/16) {
			p, err := measure((low + high.Probes) / 2)
			if err != nil {
				return err
			}
			if p.Recall >= b.o.Recall {
				high = p
			} else {
				low = p.Probes
			}
		}
		if high != curve[reached] {
			curve = append(curve[:reached], append([]Point{high}, curve[reached:]...)...)
		}
	}
	if reached < 0 {
		reached = len(curve) - 1
	}
	h.Curve, h.Probes = curve, curve[reached].Probes
	return nil
}

// calibrateRescore finds how many rows have to be scored anew so that hardly one is lost by the bits: twice as many
// until a search of all cells finds enoughBits, or no more than before.
func (b *builder) calibrateRescore(s *sample) error {
	last := 0.0
	for b.header.Rescore = 2; ; b.header.Rescore *= 2 {
		recall, err := b.recall(s, b.header.Cells)
		if err != nil {
			return err
		}
		b.o.Progress("rescore", b.header.Rescore, maxRescore)
		if recall >= enoughBits || recall == last || b.header.Rescore >= maxRescore {
			return nil
		}
		last = recall
	}
}

// enoughBits is the recall of a search of all cells from which no more rows are scored anew: above it is what cells that
// are not looked at cost.
const enoughBits = 0.998

// enough is the recall from which more effort is not measured.
const enough = 0.999

// sample returns queries with their exact neighbours.
func (b *builder) sample() (*sample, error) {
	d := b.header.Width
	s := &sample{queries: b.o.Queries, o: Options{Metric: b.o.Metric, K: b.o.K, Progress: b.stage("exact")}}
	if s.queries == nil {
		s.o.Skip = draw(rng.New(b.o.Seed, rng.Neighbours, 0), min(sampleQueries, b.header.Rows), b.header.Rows)
		s.queries = make([]float32, len(s.o.Skip)*d)
		for i, row := range s.o.Skip {
			if err := b.pool.Row(int(row), s.queries[i*d:(i+1)*d]); err != nil {
				return nil, err
			}
		}
	}
	var err error
	s.exact, err = Exact(b.ctx, b.e, b.pool, s.queries, s.o)
	if err != nil {
		return nil, fmt.Errorf("measure recall: %w", err)
	}
	s.o.Progress = nil
	return s, nil
}

// recall returns the share of the sample's neighbours that a search of some cells finds. A row
// as near as the last of the exact ones counts as one of them.
func (b *builder) recall(s *sample, probes int) (float64, error) {
	got, err := b.find(b.ctx, b.e, s.queries, s.o, probes)
	if err != nil {
		return 0, err
	}
	found := 0
	for q := range len(s.queries) / b.header.Width {
		_, exact := s.exact.Of(q)
		_, scores := got.Of(q)
		for _, v := range scores {
			if v >= exact[len(exact)-1] {
				found++
			}
		}
	}
	return float64(found) / float64(len(got.Rows)), nil
}
