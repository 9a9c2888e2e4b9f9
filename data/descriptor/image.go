package descriptor

import (
	"math"

	"github.com/geoalign/geoalign/data/transform"
)

// Cells of a side and directions of an edge.
const (
	colourCells = 12
	edgeCells   = 6
	directions  = 6
)

// ImageWidth is the number of channels of Image.
const ImageWidth = 3*colourCells*colourCells + directions*edgeCells*edgeCells

// Image returns the mean colours of 12 x 12 cells of a picture, less the mean of all, and histograms of the directions
// of its edges in 6 x 6 cells (Dalal and Triggs 2005), each of these parts as a unit vector, and so the
// whole. Of a picture of one colour everything is 0. Sides below 12 pixels leave cells empty.
func Image(m *transform.Image) []float32 {
	x := make([]float32, ImageWidth)
	colours, edges := x[:3*colourCells*colourCells], x[3*colourCells*colourCells:]
	pool(m, colours)
	orient(m, edges)
	unit(colours)
	unit(edges)
	unit(x)
	return x
}

// cell returns the cell of n that pixel i of a side of size pixels lies in.
func cell(i, size, n int) int { return i * n / size }

// pool sets dst to the mean colours of cells (cells, cells, 3), centred.
func pool(m *transform.Image, dst []float32) {
	counts := make([]float32, len(dst)/3)
	for y := range m.H {
		for x := range m.W {
			c := cell(y, m.H, colourCells)*colourCells + cell(x, m.W, colourCells)
			counts[c]++
			for k, v := range m.Pix[3*(y*m.W+x):][:3] {
				dst[3*c+k] += float32(v)
			}
		}
	}
	var mean [3]float32
	for c, n := range counts {
		for k := range mean {
			dst[3*c+k] /= max(n, 1)
			mean[k] += dst[3*c+k] / float32(len(counts))
		}
	}
	for i := range dst {
		dst[i] -= mean[i%3]
	}
}

// orient sets dst to the strengths of edges by cell and direction (cells, cells, directions).
func orient(m *transform.Image, dst []float32) {
	grey := func(x, y int) float64 {
		p := m.Pix[3*(y*m.W+x):]
		return float64(p[0]) + float64(p[1]) + float64(p[2])
	}
	for y := 1; y < m.H-1; y++ {
		for x := 1; x < m.W-1; x++ {
			dx, dy := grey(x+1, y)-grey(x-1, y), grey(x, y+1)-grey(x, y-1)
			turn := math.Atan2(dy, dx)/math.Pi + 1 // 0 to 2; an edge has no sense
			d := int(turn*directions) % directions
			dst[(cell(y, m.H, edgeCells)*edgeCells+cell(x, m.W, edgeCells))*directions+d] += float32(math.Hypot(dx, dy))
		}
	}
}

// unit scales x to length 1. What is shorter than rounding makes the mean of one colour becomes 0.
func unit(x []float32) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	if sum < 1e-6 {
		clear(x)
		return
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range x {
		x[i] *= scale
	}
}
