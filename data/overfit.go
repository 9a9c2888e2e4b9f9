package data

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/images"
)

// Overfit returns the first n samples of s, over and over: the same images,
// crops and captions (a model that cannot learn these by heart has a fault).
func Overfit(s Stream, n int) (Stream, error) {
	if n <= 0 {
		return nil, fmt.Errorf("data: number of samples to overfit must be > 0 (got %d)", n)
	}
	return overfit{s, uint64(n)}, nil
}

type overfit struct {
	Stream
	n uint64
}

func (o overfit) Sample(c uint64, row batch.Row) error { return o.Stream.Sample(c%o.n, row) }

func (o overfit) SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error {
	return sampleTimed(o.Stream, c%o.n, row, w)
}

func (o overfit) EpochSamples() int { return int(o.n) }

func (o overfit) Describe(c uint64) (string, int64, error) { return Describe(o.Stream, c%o.n) }
