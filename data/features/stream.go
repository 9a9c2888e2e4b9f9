package features

import (
	"errors"
	"io"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/rng"
)

// Columns returns what a pair has: the features of both sides and the id.
func (p *Pairs) Columns() []data.Column {
	return []data.Column{p.imageColumn(), p.textColumn(), {Name: batch.IDs, Type: batch.Int32}}
}

func (p *Pairs) imageColumn() data.Column {
	return data.Column{Name: batch.ImageFeatures, Shape: []int{p.images.Width()}}
}

func (p *Pairs) textColumn() data.Column {
	return data.Column{Name: batch.TextFeatures, Shape: []int{p.texts.Width()}}
}

// StreamConfig says how training pairs become samples.
type StreamConfig struct {
	// PerCaption makes every pair a sample; else every image is one, with one of its texts drawn
	// at each access.
	PerCaption bool
	// Neighbours of the rows of a sample; nil: none.
	ImageNeighbours, TextNeighbours Neighbours
}

// Neighbours gives each row of a side that is in a pair of training some rows of the side's pool.
type Neighbours interface {
	// Rows returns K.
	Rows() int
	// Draw sets dst (K) to rows of the pool for row i of the file of the pairs, by the random
	// numbers of sample counter of a seed. An error means a bad sample.
	Draw(seed, counter uint64, i int32, dst []int32) error
	// Pool returns the rows that are numbered.
	Pool() *Pool
}

// Pairs returns what the samples are drawn from. It stays open until the stream is closed.
func (s *Stream) Pairs() *Pairs { return s.p }

// Close closes the files of the pairs and of the neighbours. No sample and no row of a pool may be read any more.
func (s *Stream) Close() error {
	err := s.p.Close()
	for _, n := range []Neighbours{s.images, s.texts} {
		if c, ok := n.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// Stream returns the training stream: the train split, in another order every epoch. The id of a
// pair is the row of its image.
func (p *Pairs) Stream(c StreamConfig) *Stream {
	s := &Stream{p: p, pairs: p.splits["train"], images: c.ImageNeighbours, texts: c.TextNeighbours}
	n := len(s.pairs)
	if starts := imageStarts(s.pairs); !c.PerCaption && len(starts)-1 < n {
		s.starts, n = starts, len(starts)-1
	}
	s.samples, s.order = n, data.NewOrder(p.seed, n)
	return s
}

// Stream is training pairs as samples.
type Stream struct {
	p       *Pairs
	pairs   []Pair
	starts  []int32 // of the images in pairs; nil: every pair is a sample
	samples int
	order   *data.Order

	images, texts Neighbours // nil: none
}

var _ data.Stream = (*Stream)(nil)

// Columns are the features of both sides, the id, and the neighbours that there are.
func (s *Stream) Columns() []data.Column {
	list := s.p.Columns()
	if s.images != nil {
		list = append(list, data.Column{Name: batch.ImageNeighbours, Shape: []int{s.images.Rows()}, Type: batch.Int32})
	}
	if s.texts != nil {
		list = append(list, data.Column{Name: batch.TextNeighbours, Shape: []int{s.texts.Rows()}, Type: batch.Int32})
	}
	return list
}

var (
	_ data.Pooled  = (*Stream)(nil)
	_ data.Centred = (*Stream)(nil)
)

// Centres implements data.Centred.
func (s *Stream) Centres() (images, texts []float32) { return s.p.centres[0], s.p.centres[1] }

// Pools implements data.Pooled.
func (s *Stream) Pools() (images, texts batch.Pool) {
	if s.images != nil {
		images = s.images.Pool()
	}
	if s.texts != nil {
		texts = s.texts.Pool()
	}
	return images, texts
}

// EpochSamples is the number of training pairs, or of their images.
func (s *Stream) EpochSamples() int { return s.samples }

// pair returns the pair of sample c.
func (s *Stream) pair(c uint64) Pair {
	i := s.order.At(c)
	if s.starts == nil {
		return s.pairs[i]
	}
	texts := s.pairs[s.starts[i]:s.starts[i+1]]
	if len(texts) == 1 {
		return texts[0]
	}
	return texts[rng.New(s.p.seed, rng.Caption, c).IntN(len(texts))]
}

// Sample reads sample c of the order of the epochs. A row that is not finite is a bad sample.
func (s *Stream) Sample(c uint64, row batch.Row) error {
	q := s.pair(c)
	row.Set(batch.IDs, q.Image)
	if err := fill(s.p.images, q.Image, row.Floats(batch.ImageFeatures)); err != nil {
		return err
	}
	if err := fill(s.p.texts, q.Text, row.Floats(batch.TextFeatures)); err != nil {
		return err
	}
	if dst := row.Ints(batch.ImageNeighbours); dst != nil {
		if err := s.images.Draw(s.p.seed, c, q.Image, dst); err != nil {
			return err
		}
	}
	if dst := row.Ints(batch.TextNeighbours); dst != nil {
		return s.texts.Draw(s.p.seed, c, q.Text, dst)
	}
	return nil
}

// fill reads a row of m if anybody asked for it.
func fill(m *Matrix, i int32, dst []float32) error {
	if dst == nil {
		return nil
	}
	return m.Row(int(i), dst)
}
