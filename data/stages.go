package data

import (
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
)

// timedDataset is implemented by data sets that can say where the time of an image goes.
type timedDataset interface {
	imageTimed(i int, w *images.Stopwatch) (*transform.Image, error)
}

var (
	_ timedDataset = (*Files)(nil)
	_ timedDataset = (*Table)(nil)
	_ timedDataset = (*Shards)(nil)
	_ timedDataset = (*Parquet)(nil)
)

// imageOf is ds.Image(i) with the time of its stages.
func imageOf(ds Dataset, i int, w *images.Stopwatch) (*transform.Image, error) {
	if f, ok := ds.(timedDataset); ok {
		return f.imageTimed(i, w)
	}
	m, err := ds.Image(i)
	w.Lap(images.StageRead)
	return m, err
}

// timedStream is implemented by streams that can say where their time goes.
type timedStream interface {
	SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error
}

func sampleTimed(s Stream, c uint64, row batch.Row, w *images.Stopwatch) error {
	if t, ok := s.(timedStream); ok {
		return t.SampleTimed(c, row, w)
	}
	w.Start()
	err := s.Sample(c, row)
	w.Lap(images.StageRead)
	if err == nil {
		w.Made()
	}
	return err
}

// MeasureStages makes the samples first, first+1, ... one after the other for at
// least the given time and one sample, each with the given columns, and returns where
// the time went, and how many samples were bad. Time in streams that do not tell their
// stages counts as reading.
func MeasureStages(stream Stream, columns []Column, first uint64, atLeast time.Duration) (w images.Stopwatch, bad int) {
	row := batch.New(1, columns...).Row(0)
	begin := time.Now()
	for c := first; c == first || time.Since(begin) < atLeast; c++ {
		if err := sampleTimed(stream, c, row, &w); err != nil {
			bad++
		}
	}
	return w, bad
}
