package transform

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// Mean and Std normalise the channels R, G, B of values in [0, 1] (CLIP's
// statistics, as in ALBEF's code).
var (
	Mean = [3]float32{0.48145466, 0.4578275, 0.40821073}
	Std  = [3]float32{0.26862954, 0.26130258, 0.27577711}
)

// Train is the training pipeline: random resized crop to Size x Size, colour
// jitter, grey, blur, random flip, RandAugment, normalise (ALBEF, TCL).
type Train struct {
	Size     int     // side of the output
	ScaleMin float64 // least share of the area that a crop keeps; 1 or more, and 0: no crop, the whole image is resized
	Flip     bool    // mirror every second image
	Jitter   float64 // probability of ColorJitter(0.4, 0.4, 0.4, 0.1); 0: never
	Gray     float64 // probability of dropping the colours; 0: never
	Blur     float64 // probability of a Gaussian blur; 0: never
	Ops      int     // operations of RandAugment; 0: none
	Level    int     // strength of RandAugment, 0 to 10
}

// Eval is the evaluation pipeline: resize to exactly Size x Size, whatever the
// aspect ratio, and normalise.
type Eval struct {
	Size int // side of the output
}

// scratch is the memory of one run of a pipeline.
type scratch struct {
	resizer
	a, b Image
	blur blurrer
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Apply writes the augmented, normalised image to dst, planar (3, Size, Size).
// img is not changed. The result depends on img, t and the state of r only.
func (t Train) Apply(img *Image, r *rand.Rand, dst []float32) error {
	return t.ApplyTimed(img, r, dst, nil)
}

// Times is where the time of a pipeline goes.
type Times struct {
	Resize, Augment, Normalize time.Duration // Augment: colour and RandAugment
}

// ApplyTimed is Apply and adds to times, if not nil, what each part took.
func (t Train) ApplyTimed(img *Image, r *rand.Rand, dst []float32, times *Times) error {
	if err := ready(img, t.Size, dst); err != nil {
		return err
	}
	var begin time.Time
	if times != nil {
		begin = time.Now()
	}
	lap := func(d *time.Duration) {
		now := time.Now()
		*d += now.Sub(begin)
		begin = now
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	box := Rect{0, 0, img.W, img.H}
	if t.ScaleMin > 0 && t.ScaleMin < 1 {
		box = RandomCrop(r, img.W, img.H, t.ScaleMin)
	}
	s.resize(&s.a, img, box, t.Size, t.Size, t.Flip && r.Float64() < 0.5)
	if times != nil {
		lap(&times.Resize)
	}
	t.colour(r, &s.a, &s.blur)
	out, _ := randAugment(r, &s.a, &s.b, t.Ops, t.Level)
	if times != nil {
		lap(&times.Augment)
	}
	Normalize(out, dst)
	if times != nil {
		lap(&times.Normalize)
	}
	return nil
}

// Apply writes the resized, normalised image to dst, planar (3, Size, Size).
// The generator is not used and may be nil.
func (e Eval) Apply(img *Image, _ *rand.Rand, dst []float32) error {
	if err := ready(img, e.Size, dst); err != nil {
		return err
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.resize(&s.a, img, Rect{0, 0, img.W, img.H}, e.Size, e.Size, false)
	Normalize(&s.a, dst)
	return nil
}

func ready(img *Image, size int, dst []float32) error {
	if size <= 0 {
		return fmt.Errorf("transform: size must be positive (got %d)", size)
	}
	if len(dst) != 3*size*size {
		return fmt.Errorf("transform: the output of an image of %dx%d has %d values (got %d)", size, size, 3*size*size, len(dst))
	}
	return img.check()
}

var normal = pixel.NewNormalizer(Mean, Std)

// Normalize writes (v/255 - Mean) / Std of every value of m to dst, planar
// (3, H, W).
func Normalize(m *Image, dst []float32) { normal.Apply(dst, m.Pix) }

// Denormalize is the inverse of Normalize: the w x h image that a planar
// (3, h, w) tensor shows, rounded and cut to bytes.
func Denormalize(src []float32, w, h int) (*Image, error) {
	if w <= 0 || h <= 0 || len(src) != 3*w*h {
		return nil, fmt.Errorf("transform: %d values are no planar image of %dx%d: want %d", len(src), w, h, 3*w*h)
	}
	m := NewImage(w, h)
	for c := 0; c < 3; c++ {
		for i, v := range src[c*w*h : (c+1)*w*h] {
			m.Pix[3*i+c] = uint8(min(max((v*Std[c]+Mean[c])*255+0.5, 0), 255))
		}
	}
	return m, nil
}
