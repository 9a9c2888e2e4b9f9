package eval

import (
	"math"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/bicubic"
)

// HeatMap says of every pixel of a picture how much it speaks for a text. Sums over boxes take four look-ups.
type HeatMap struct {
	w, h int
	sums []float64 // (h+1, w+1) of all values above and to the left
	peak int       // place of the largest value, of equal ones the first
	most float64   // that value
}

// NewHeatMap enlarges values (rows, columns), what the patches of a picture say, bicubically to its w x h pixels,
// as torch's interpolate with align_corners=False does.
func NewHeatMap(values []float64, rows, columns, w, h int) HeatMap {
	v := bicubic.Resize(values, rows, columns, h, w)
	m := HeatMap{w: w, h: h, sums: make([]float64, (h+1)*(w+1))}
	for y := range h {
		row := 0.0
		for x := range w {
			i := y*w + x
			if v[i] > v[m.peak] {
				m.peak = i
			}
			row += v[i]
			m.sums[(y+1)*(w+1)+x+1] = m.sums[y*(w+1)+x+1] + row
		}
	}
	m.most = v[m.peak]
	return m
}

// Peak returns the middle of the pixel with the largest value, of equal ones the first; ok is false where none is above
// 0.
func (m HeatMap) Peak() (x, y float64, ok bool) {
	return float64(m.peak%m.w) + 0.5, float64(m.peak/m.w) + 0.5, m.most > 0
}

// Sum adds the values inside a box up: of the pixels from its left upper corner on, which like the right lower one
// is cut off to a whole number. What lies outside the picture counts nothing.
func (m HeatMap) Sum(b data.Rect) float64 {
	at := func(v float64, most int) int { return int(min(max(v, 0), float64(most))) }
	x0, x1 := at(b.X, m.w), at(b.X+b.W, m.w)
	y0, y1 := at(b.Y, m.h), at(b.Y+b.H, m.h)
	if x1 <= x0 || y1 <= y0 {
		return 0
	}
	n := m.w + 1
	return m.sums[y1*n+x1] - m.sums[y0*n+x1] - m.sums[y1*n+x0] + m.sums[y0*n+x0]
}

// Score is how much a box holds of the map, Sum / area^0.5, as ALBEF's grounding ranks proposals. A box without an
// area has 0.
func (m HeatMap) Score(b data.Rect) float64 {
	if area := b.W * b.H; area > 0 {
		return m.Sum(b) / math.Sqrt(area)
	}
	return 0
}

// Choose returns the box with the largest score, of equal ones the first, and -1 where none is above 0: then the
// map says nothing. (ALBEF's published code takes the box of the sample before in that case.)
func (m HeatMap) Choose(boxes []data.Rect) int {
	best, most := -1, 0.0
	for i, b := range boxes {
		if s := m.Score(b); s > most {
			best, most = i, s
		}
	}
	return best
}
