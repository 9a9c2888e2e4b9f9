package images

import (
	"time"

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

// Start begins the measuring of a sample.
func (w *Stopwatch) Start() {
	if w != nil {
		w.last = time.Now()
	}
}

// Lap adds the time since the last lap or start to a stage.
func (w *Stopwatch) Lap(s Stage) {
	if w == nil {
		return
	}
	now := time.Now()
	w.times[s] += now.Sub(w.last)
	w.last = now
}

// Made counts a sample.
func (w *Stopwatch) Made() {
	if w != nil {
		w.Samples++
	}
}

// Saw counts the pixels of an image.
func (w *Stopwatch) Saw(m *transform.Image) {
	if w != nil {
		w.Pixels += int64(m.W) * int64(m.H)
	}
}

// Transform is where the pipeline counts.
func (w *Stopwatch) Transform() *transform.Times {
	if w == nil {
		return nil
	}
	return &w.parts
}
