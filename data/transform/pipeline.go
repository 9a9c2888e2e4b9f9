package transform

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Train is the training pipeline: random resized crop to Size x Size, colour
// jitter, grey, blur, random flip, RandAugment, normalise (ALBEF, TCL), random erasing (TransReID).
type Train struct {
	Input     // how images are resized and normalised
	Size  int // side of the output
	// least share of the area that a crop keeps; 1 or more, and 0: no random crop, the image is resized as in
	// evaluation
	ScaleMin float64
	ScaleMax float64 // largest share; 0: 1
	Flip     bool    // mirror every second image
	Jitter   float64 // probability of ColorJitter(0.4, 0.4, 0.4, 0.1); 0: never
	Gray     float64 // probability of dropping the colours; 0: never
	Blur     float64 // probability of a Gaussian blur; 0: never
	Ops      int     // operations of RandAugment; 0: none
	Level    int     // strength of RandAugment, 0 to 10
	Erase    float64 // probability of erasing a rectangle; 0: never
}

// Eval is the evaluation pipeline: resize and normalise as Input says.
type Eval struct {
	Input
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
	box, to := whole(img), t.window(img.W, img.H, t.Size)
	if t.ScaleMin > 0 && t.ScaleMin < 1 {
		box, to = RandomCrop(r, img.W, img.H, t.ScaleMin, cmp.Or(t.ScaleMax, 1)), square(t.Size)
	}
	s.bilinear = t.Bilinear
	s.resize(&s.a, img, box, to, t.Flip && r.Float64() < 0.5)
	if times != nil {
		lap(&times.Resize)
	}
	t.colour(r, &s.a, &s.blur)
	out, _ := randAugment(r, &s.a, &s.b, t.Ops, t.Level)
	if times != nil {
		lap(&times.Augment)
	}
	t.Normalize(out, dst)
	erase(r, t.Erase, t.Size, dst)
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
	s.bilinear = e.Bilinear
	s.resize(&s.a, img, whole(img), e.window(img.W, img.H, e.Size), false)
	e.Normalize(&s.a, dst)
	return nil
}

func ready(img *Image, size int, dst []float32) error {
	if size <= 0 {
		return fmt.Errorf("transform: size must be positive (got %d)", size)
	}
	if len(dst) != 3*size*size {
		return fmt.Errorf("transform: the output of an image of %dx%d has %d values (got %d)", size, size, 3*size*size,
			len(dst))
	}
	return img.check()
}
