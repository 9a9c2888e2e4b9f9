package features

import (
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/batch"
)

// columns of a pair.
func (p *Pairs) columns() []data.Column {
	return []data.Column{p.imageColumn(), p.textColumn(), {Name: batch.IDs, Type: batch.Int32}}
}

func (p *Pairs) imageColumn() data.Column {
	return data.Column{Name: batch.ImageFeatures, Shape: []int{p.images.Width()}}
}

func (p *Pairs) textColumn() data.Column {
	return data.Column{Name: batch.TextFeatures, Shape: []int{p.texts.Width()}}
}

// Stream returns the training stream: the pairs of the train split, in another order every
// epoch. The id of a pair is the row of its image.
func (p *Pairs) Stream() data.Stream {
	list := p.splits["train"]
	return &stream{p: p, pairs: list, order: data.NewOrder(p.seed, len(list))}
}

type stream struct {
	p     *Pairs
	pairs []Pair
	order *data.Order
}

// Columns are the features of both sides and the id.
func (s *stream) Columns() []data.Column { return s.p.columns() }

// EpochSamples is the number of training pairs.
func (s *stream) EpochSamples() int { return len(s.pairs) }

// Sample reads pair c of the order of the epochs. A row that is not finite is a bad sample.
func (s *stream) Sample(c uint64, row batch.Row) error {
	q := s.pairs[s.order.At(c)]
	row.Set(batch.IDs, q.Image)
	if err := fill(s.p.images, q.Image, row.Floats(batch.ImageFeatures)); err != nil {
		return err
	}
	return fill(s.p.texts, q.Text, row.Floats(batch.TextFeatures))
}

// fill reads a row of m if anybody asked for it.
func fill(m *Matrix, i int32, dst []float32) error {
	if dst == nil {
		return nil
	}
	return m.Row(int(i), dst)
}
