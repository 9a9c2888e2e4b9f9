package data

import (
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/transform"
)

// Stage is a part of the making of a sample.
type Stage int

// The stages, in their order.
const (
	StageCache     Stage = iota // looking up, reading and writing the image cache
	StageRead                   // reading the image file
	StageDecode                 // an image file to colour planes
	StageColour                 // stretching the colour planes, conversion to RGB
	StageDraw                   // drawing a procedural scene
	StageResize                 // crop, resize and flip
	StageAugment                // colour jitter, grey, blur and RandAugment
	StageNormalize              // bytes to normalised floats
	StageText                   // choosing, cleaning and encoding the caption
	NumStages
)

// String is the name of the stage in reports.
func (s Stage) String() string {
	return [...]string{"cache", "read", "decode", "colour", "draw", "resize", "augment", "normalise", "text"}[s]
}

// Stopwatch adds up where the time of samples goes. The methods do nothing on nil.
// It is for one goroutine.
type Stopwatch struct {
	Samples int
	Pixels  int64 // of the images before they are resized

	times [NumStages]time.Duration
	last  time.Time
	parts transform.Times
}

// Time is what a stage took, of all samples together.
func (w *Stopwatch) Time(s Stage) time.Duration {
	t := w.times[s]
	switch s {
	case StageResize:
		t += w.parts.Resize
	case StageAugment:
		t += w.parts.Augment
	case StageNormalize:
		t += w.parts.Normalize
	}
	return t
}

// Total is the time of all stages.
func (w *Stopwatch) Total() time.Duration {
	var sum time.Duration
	for s := range NumStages {
		sum += w.Time(s)
	}
	return sum
}

func (w *Stopwatch) start() {
	if w != nil {
		w.last = time.Now()
	}
}

// lap adds the time since the last lap or start to a stage.
func (w *Stopwatch) lap(s Stage) {
	if w == nil {
		return
	}
	now := time.Now()
	w.times[s] += now.Sub(w.last)
	w.last = now
}

// made counts a sample.
func (w *Stopwatch) made() {
	if w != nil {
		w.Samples++
	}
}

// saw counts the pixels of an image.
func (w *Stopwatch) saw(m *transform.Image) {
	if w != nil {
		w.Pixels += int64(m.W) * int64(m.H)
	}
}

// transform is where the pipeline counts.
func (w *Stopwatch) transform() *transform.Times {
	if w == nil {
		return nil
	}
	return &w.parts
}

// timedDataset is implemented by data sets that can say where the time of an image goes.
type timedDataset interface {
	imageTimed(i int, w *Stopwatch) (*transform.Image, error)
}

var (
	_ timedDataset = (*Files)(nil)
	_ timedDataset = (*Table)(nil)
	_ timedDataset = (*Shards)(nil)
	_ timedDataset = (*Parquet)(nil)
)

// imageOf is ds.Image(i) with the time of its stages.
func imageOf(ds Dataset, i int, w *Stopwatch) (*transform.Image, error) {
	if f, ok := ds.(timedDataset); ok {
		return f.imageTimed(i, w)
	}
	m, err := ds.Image(i)
	w.lap(StageRead)
	return m, err
}

// timedStream is implemented by streams that can say where their time goes.
type timedStream interface {
	SampleTimed(c uint64, row batch.Row, w *Stopwatch) error
}

func sampleTimed(s Stream, c uint64, row batch.Row, w *Stopwatch) error {
	if t, ok := s.(timedStream); ok {
		return t.SampleTimed(c, row, w)
	}
	w.start()
	err := s.Sample(c, row)
	w.lap(StageRead)
	if err == nil {
		w.made()
	}
	return err
}

// MeasureStages makes the samples first, first+1, ... one after the other for at
// least the given time and one sample, each with the given columns, and returns where
// the time went, and how many samples were bad. Time in streams that do not tell their
// stages counts as reading.
func MeasureStages(stream Stream, columns []Column, first uint64, atLeast time.Duration) (w Stopwatch, bad int) {
	row := batch.New(1, columns...).Row(0)
	begin := time.Now()
	for c := first; c == first || time.Since(begin) < atLeast; c++ {
		if err := sampleTimed(stream, c, row, &w); err != nil {
			bad++
		}
	}
	return w, bad
}
