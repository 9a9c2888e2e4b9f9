package eval

import (
	"math"

	"github.com/geoalign/geoalign/data"
)

// slidingScales are the sizes of sliding boxes, the root of their area over that of the picture's, slidingRatios width
// over height.
var (
	slidingScales = []float64{1. / 8, 1. / 6, 1. / 4, 1. / 3, 1. / 2, 2. / 3}
	slidingRatios = []float64{1. / 2, 1, 2}
)

// slidingSteps is how many steps a box is moved by until it has gone its own length.
const slidingSteps = 4

// SlidingBoxes are boxes of some sizes and shapes all over a picture of w x h pixels, to look for something in where no
// detector has found any: about 3,000.
func SlidingBoxes(w, h float64) (list []data.Rect) {
	for _, scale := range slidingScales {
		for _, ratio := range slidingRatios {
			side := scale * math.Sqrt(w*h)
			bw, bh := side*math.Sqrt(ratio), side/math.Sqrt(ratio)
			if bw > w || bh > h {
				continue
			}
			nx, ny := positions(w, bw), positions(h, bh)
			for y := range ny {
				for x := range nx {
					list = append(list, data.Rect{X: place(x, nx, w-bw), Y: place(y, ny, h-bh), W: bw, H: bh})
				}
			}
		}
	}
	return list
}

// positions is how many places a box has along one axis.
func positions(length, box float64) int {
	return 1 + int(math.Ceil((length-box)/(box/slidingSteps)-1e-9))
}

// place is the i-th of n places from 0 to most.
func place(i, n int, most float64) float64 {
	if n == 1 {
		return 0
	}
	return most * float64(i) / float64(n-1)
}
