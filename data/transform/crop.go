package transform

import (
	"math"
	"math/rand/v2"
)

// Limits of the aspect ratio (width / height) of a random crop.
const (
	minRatio = 3.0 / 4
	maxRatio = 4.0 / 3
)

// RandomCrop draws the rectangle of a random resized crop of a w x h image as
// torchvision does: an area share uniform in [scaleMin, scaleMax], an aspect ratio
// log-uniform in [3/4, 4/3], a uniform place; after ten draws that do not fit,
// the largest centred rectangle of an allowed ratio.
func RandomCrop(r *rand.Rand, w, h int, scaleMin, scaleMax float64) Rect {
	area := float64(w) * float64(h)
	for range 10 {
		target := area * (scaleMin + (scaleMax-scaleMin)*r.Float64())
		lo, hi := math.Log(minRatio), math.Log(maxRatio)
		ratio := math.Exp(lo + (hi-lo)*r.Float64())
		cw := int(math.RoundToEven(math.Sqrt(target * ratio)))
		ch := int(math.RoundToEven(math.Sqrt(target / ratio)))
		if cw > 0 && cw <= w && ch > 0 && ch <= h {
			y := r.IntN(h - ch + 1)
			x := r.IntN(w - cw + 1)
			return Rect{x, y, cw, ch}
		}
	}
	cw, ch := w, h
	switch ratio := float64(w) / float64(h); {
	case ratio < minRatio:
		ch = max(1, int(math.RoundToEven(float64(w)/minRatio)))
	case ratio > maxRatio:
		cw = max(1, int(math.RoundToEven(float64(h)*maxRatio)))
	}
	return Rect{(w - cw) / 2, (h - ch) / 2, cw, ch}
}
