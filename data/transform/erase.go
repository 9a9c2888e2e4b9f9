package transform

import (
	"math"
	"math/rand/v2"
)

// Ranges of random erasing (Zhong et al. 2020), those of timm, which TransReID trains with.
const (
	eraseLeast, eraseMost = 0.02, 1.0 / 3 // of the area
	eraseAspect           = 0.3           // least height by width; the largest is its inverse
	eraseTries            = 10            // rectangles that do not fit before nothing is erased
)

// erase fills a rectangle of a normalised image x, planar (3, size, size), with values of N(0, 1), with a probability.
func erase(r *rand.Rand, probability float64, size int, x []float32) {
	if probability <= 0 || r.Float64() >= probability {
		return
	}
	for range eraseTries {
		area := between(r, eraseLeast, eraseMost) * float64(size*size)
		aspect := math.Exp(between(r, math.Log(eraseAspect), -math.Log(eraseAspect)))
		h, w := int(math.Round(math.Sqrt(area*aspect))), int(math.Round(math.Sqrt(area/aspect)))
		if h < 1 || w < 1 || h >= size || w >= size {
			continue
		}
		top, left := r.IntN(size-h+1), r.IntN(size-w+1)
		for c := range 3 {
			for y := top; y < top+h; y++ {
				row := x[(c*size+y)*size+left:][:w]
				for i := range row {
					row[i] = float32(r.NormFloat64())
				}
			}
		}
		return
	}
}
