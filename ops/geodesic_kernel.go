package ops

import "math"

// argMax returns the first index of the largest value of x, of which there is at least
// one. A NaN is never the largest.
func argMax(x []float32) int {
	at, best := 0, math.Inf(-1)
	for i, v := range x {
		if float64(v) > best {
			at, best = i, float64(v)
		}
	}
	return at
}

// pathCos sets dst[j] = cos(min(entry[owner[j]]+reach[j], limit) * pi/limit).
func pathCos(dst, entry []float32, owner []int32, reach []float32, limit float32) {
	for j := range dst {
		theta := min(entry[owner[j]]+reach[j], limit)
		dst[j] = float32(math.Cos(float64(theta) * math.Pi / float64(limit)))
	}
}

// pathCosSlope sets dst[j] = dy[j] * -sin(theta*pi/limit)*pi/limit, 0 where theta is cut.
func pathCosSlope(dst, entry []float32, owner []int32, reach, dy []float32, limit float32) {
	for j := range dst {
		theta := entry[owner[j]] + reach[j]
		if theta >= limit {
			dst[j] = 0
			continue
		}
		dst[j] = float32(-float64(dy[j]) * math.Sin(float64(theta)*math.Pi/float64(limit)) * math.Pi / float64(limit))
	}
}
