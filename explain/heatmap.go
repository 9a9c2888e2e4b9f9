package explain

import (
	"image"
	"image/color"
	"strconv"
	"strings"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"github.com/geoalign/geoalign/internal/typeface"
)

// Heatmap is a table of values in colours, words by regions as a rule.
type Heatmap struct {
	Rows, Columns []string
	Values        []float64 // (rows, columns); what is below 0 has the colour of 0
	Marked        []int     // places in Values with a frame around them
	// Beside has columns of figures with one for each row, Below rows with one for each column.
	Beside, Below []Figures
}

// Figures are numbers with a name.
type Figures struct {
	Name   string
	Values []float64
}

// Most returns the largest value, at least 0.
func (h Heatmap) Most() float64 { return Map{Values: h.Values}.Most() }

// Colour returns the colour of value i, against the largest one.
func (h Heatmap) Colour(i int) color.RGBA {
	most := h.Most()
	if most <= 0 {
		return Heat(0)
	}
	return Heat(h.Values[i] / most)
}

// Figure writes a number with so many decimals, without a sign before 0.
func Figure(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}

// Cell is the figure of value i; where it is exactly 0, as what focal attention leaves out, there is none.
func (h Heatmap) Cell(i int) string {
	if h.Values[i] == 0 {
		return ""
	}
	return Figure(h.Values[i], 2)
}

// Wide says whether there is room for a figure in each column.
func (h Heatmap) Wide() bool { return len(h.Columns) <= mostFigures }

// Sizes of a heat map in pixels.
const (
	mostFigures  = 40 // columns with a figure in each cell
	heatCell     = 38
	heatNarrow   = 8
	heatRow      = 24
	heatFigures  = 64 // a column of Beside
	heatLabels   = 150
	heatLetters  = 13
	heatNumbers  = 11
	labelEvery   = 4 // narrow columns
	heatMargin   = 10
	heatBaseline = 7
)

// Draw draws the table on white. Columns that are too many for figures have a name each few.
func (h Heatmap) Draw() (image.Image, error) {
	face, err := typeface.New(heatLetters)
	if err != nil {
		return nil, err
	}
	small, err := typeface.New(heatNumbers)
	if err != nil {
		return nil, err
	}
	left, cell := 40, heatCell
	for _, s := range h.Rows {
		left = max(left, min(font.MeasureString(face, s).Ceil(), heatLabels))
	}
	if len(h.Below) > 0 {
		for _, x := range h.Below {
			left = max(left, font.MeasureString(small, x.Name).Ceil())
		}
	}
	left += 2 * heatMargin
	below := h.Below
	if !h.Wide() {
		cell, below = heatNarrow, nil
	}
	right := left + cell*len(h.Columns)
	top := heatMargin + heatRow
	bottom := top + heatRow*len(h.Rows)
	out := image.NewRGBA(image.Rect(0, 0, right+heatFigures*len(h.Beside)+heatMargin,
		bottom+heatRow*len(below)+heatMargin))
	draw.Draw(out, out.Rect, image.NewUniform(paper), image.Point{}, draw.Src)
	write := func(face font.Face, pen color.Color, s string, x, y int) {
		d := font.Drawer{Dst: out, Src: image.NewUniform(pen), Face: face, Dot: fixed.P(x, y)}
		d.DrawString(s)
	}
	// toRight ends a text at x.
	toRight := func(face font.Face, pen color.Color, s string, x, y int) {
		write(face, pen, s, x-font.MeasureString(face, s).Ceil(), y)
	}
	for j, s := range h.Columns {
		if h.Wide() {
			centred(out, small, soft, fit(small, s, cell-2), image.Rect(left+j*cell, 0, left+(j+1)*cell, 0),
				top-heatBaseline)
		} else if j%labelEvery == 0 {
			centred(out, small, soft, s, image.Rect(left+j*cell, 0, left+(j+1)*cell, 0), top-heatBaseline)
		}
	}
	for i, s := range h.Rows {
		y := top + i*heatRow
		toRight(face, ink, fit(face, s, heatLabels), left-heatMargin, y+heatRow-heatBaseline)
		for j := range h.Columns {
			at := i*len(h.Columns) + j
			box := image.Rect(left+j*cell, y, left+(j+1)*cell, y+heatRow)
			c := h.Colour(at)
			draw.Draw(out, box, image.NewUniform(c), image.Point{}, draw.Src)
			if h.Wide() {
				centred(out, small, Letters(c), h.Cell(at), box, box.Max.Y-heatBaseline)
			}
		}
	}
	for _, at := range h.Marked {
		x, y := left+at%len(h.Columns)*cell, top+at/len(h.Columns)*heatRow
		frame(out, image.Rect(x, y, x+cell, y+heatRow), mark, 2)
	}
	for k, x := range h.Beside {
		edge := right + heatFigures*(k+1)
		toRight(small, soft, x.Name, edge, top-heatBaseline)
		for i, v := range x.Values {
			toRight(small, ink, Figure(v, 3), edge, top+(i+1)*heatRow-heatBaseline)
		}
	}
	for k, x := range below {
		y := bottom + (k+1)*heatRow - heatBaseline
		toRight(small, soft, x.Name, left-heatMargin, y)
		for j, v := range x.Values {
			centred(out, small, ink, Figure(v, 3), image.Rect(left+j*cell, 0, left+(j+1)*cell, 0), y)
		}
	}
	return out, nil
}

// mark frames what is chosen.
var mark = color.RGBA{47, 163, 216, 255}
