package explain

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"github.com/geoalign/geoalign/internal/typeface"
)

// Box is where a region lies: left, top, right and bottom as shares of the width and height of the image.
type Box [4]float64

// Sizes in pixels of pictures of regions.
const (
	canvasSide = 480 // of an empty canvas
	cellSide   = 56  // of a region that has no box
	cellsInRow = 12
	labels     = 15

	manyRegions = 12
)

// plainBox is the colour of boxes without a value.
var plainBox = color.RGBA{0, 114, 178, 255}

// greyed is how light the picture of an image stays, so that pale boxes show on it.
const greyed = 0.62

// Regions draws the regions of an image, numbered from 0, over the image in grey, or where it is nil on
// an empty canvas: a box each, in the colour of its value against the largest one and the stronger the
// larger that is, the strongest on top. What is below 0 is drawn as 0. Of many regions those are numbered
// that have at least a tenth of the largest value. Without values (nil) all are drawn alike, over the image
// as it is.
// Without boxes (nil) regions are n squares in a row.
func Regions(img image.Image, boxes []Box, n int, values []float64) (*image.RGBA, error) {
	out, places := stage(img, boxes, n, values != nil)
	size, many := min(max(labels, out.Rect.Dx()/24), 2*labels), n > manyRegions // to be read in small pictures too
	if many {
		size = max(labels, 2*size/3)
	}
	face, err := typeface.New(float64(size))
	if err != nil {
		return nil, err
	}
	most, order := 0.0, make([]int, n)
	for i := range order {
		order[i] = i
		if values != nil {
			most = max(most, values[i])
		}
	}
	heat := func(i int) float64 {
		if most <= 0 {
			return 0
		}
		return max(values[i], 0) / most
	}
	if values != nil {
		slices.SortStableFunc(order, func(a, b int) int {
			switch x, y := heat(a), heat(b); {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
	}
	for _, i := range order {
		pen, fill, width := plainBox, 0.0, 2
		if values != nil {
			h := heat(i)
			pen, fill = Heat(h), 0.6*math.Pow(h, 0.75)
			switch {
			case h > 0.5:
				width = 3
			case many && h < 0.1:
				width = 1
			}
		}
		shade(out, places[i], pen, fill)
		frame(out, places[i], pen, width)
	}
	for _, i := range order { // above all boxes
		pen := plainBox
		if values != nil {
			if pen = Heat(heat(i)); many && heat(i) < 0.1 {
				continue
			}
		}
		tag(out, face, size, places[i], fmt.Sprint(i), pen)
	}
	return out, nil
}

// stage returns what regions are drawn on, an image in grey for heat, and where they lie.
func stage(img image.Image, boxes []Box, n int, heat bool) (out *image.RGBA, places []image.Rectangle) {
	switch {
	case boxes == nil:
		rows, columns := (n+cellsInRow-1)/cellsInRow, min(n, cellsInRow)
		out = empty(columns*cellSide, rows*cellSide)
		for i := range n {
			x, y := i%cellsInRow*cellSide, i/cellsInRow*cellSide
			places = append(places, image.Rect(x, y, x+cellSide, y+cellSide).Inset(3))
		}
		return out, places
	case img == nil:
		out = empty(canvasSide, canvasSide)
	default:
		out = Enlarged(img)
		for i := 0; heat && i < len(out.Pix); i += 4 {
			p := out.Pix[i : i+3]
			grey := greyed * (0.299*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2]))
			p[0], p[1], p[2] = uint8(grey), uint8(grey), uint8(grey)
		}
	}
	w, h := float64(out.Rect.Dx()), float64(out.Rect.Dy())
	for _, b := range boxes[:n] {
		r := image.Rect(int(b[0]*w), int(b[1]*h), int(math.Ceil(b[2]*w)), int(math.Ceil(b[3]*h)))
		places = append(places, r.Intersect(out.Rect))
	}
	return out, places
}

// empty is a canvas on which both ends of the scale of colours show.
func empty(w, h int) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, max(w, 1), max(h, 1)))
	draw.Draw(out, out.Rect, image.NewUniform(color.RGBA{176, 180, 186, 255}), image.Point{}, draw.Src)
	return out
}

// shade lays a colour over a part of a picture.
func shade(out *image.RGBA, r image.Rectangle, c color.RGBA, share float64) {
	if share > 0 {
		mask := image.NewUniform(color.Alpha{uint8(255*share + 0.5)})
		draw.DrawMask(out, r, image.NewUniform(c), image.Point{}, mask, image.Point{}, draw.Over)
	}
}

// frame draws the outline of a box within it.
func frame(out *image.RGBA, r image.Rectangle, c color.RGBA, width int) {
	pen := image.NewUniform(c)
	for _, side := range []image.Rectangle{
		image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+width), image.Rect(r.Min.X, r.Max.Y-width, r.Max.X, r.Max.Y),
		image.Rect(r.Min.X, r.Min.Y, r.Min.X+width, r.Max.Y), image.Rect(r.Max.X-width, r.Min.Y, r.Max.X, r.Max.Y),
	} {
		draw.Draw(out, side.Intersect(r), pen, image.Point{}, draw.Src)
	}
}

// tag writes the number of a region at the top left of its box, within the picture.
func tag(out *image.RGBA, face font.Face, size int, r image.Rectangle, s string, back color.RGBA) {
	w, h := font.MeasureString(face, s).Ceil()+8, size+4
	x, y := max(min(r.Min.X, out.Rect.Max.X-w), 0), max(min(r.Min.Y, out.Rect.Max.Y-h), 0)
	box := image.Rect(x, y, x+w, y+h)
	draw.Draw(out, box, image.NewUniform(back), image.Point{}, draw.Src)
	d := font.Drawer{Dst: out, Src: image.NewUniform(Letters(back)), Face: face}
	d.Dot = fixed.P(x+4, y+h-size/3)
	d.DrawString(s)
}

// Letters returns the colour of letters on a colour: dark on light ones, white on dark ones.
func Letters(c color.RGBA) color.RGBA {
	if 0.299*float64(c.R)+0.587*float64(c.G)+0.114*float64(c.B) > 140 {
		return ink
	}
	return paper
}
