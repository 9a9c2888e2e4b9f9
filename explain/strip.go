package explain

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"github.com/geoalign/geoalign/internal/typeface"
)

// Word is a word of a text with what it adds to a score.
type Word struct {
	Text    string
	Value   float64
	Special bool // stands around a text, and is not shared out
}

// Layout of a strip in pixels.
const (
	stripWidth = 640
	margin     = 12
	padding    = 9
	boxHeight  = 34
	underline  = 18 // of the figure under a word
	letters    = 18
	figures    = 11
)

var (
	paper = color.RGBA{255, 255, 255, 255}
	ink   = color.RGBA{28, 32, 36, 255}
	soft  = color.RGBA{110, 116, 124, 255}
	warm  = color.RGBA{213, 94, 0, 255}
)

// Strip draws words in lines, each on a colour as strong as its value against the largest one,
// with its share of all values above 0 beneath. Special words are pale.
func Strip(list []Word) (image.Image, error) {
	face, err := typeface.New(letters)
	if err != nil {
		return nil, err
	}
	small, err := typeface.New(figures)
	if err != nil {
		return nil, err
	}
	boxes, height := lay(face, list)
	out := image.NewRGBA(image.Rect(0, 0, stripWidth, height))
	draw.Draw(out, out.Rect, image.NewUniform(paper), image.Point{}, draw.Src)
	shares := Shares(list)
	most := 0.0
	for _, s := range shares {
		most = max(most, s)
	}
	for i, b := range boxes {
		w, pen, under := list[i], ink, soft
		if w.Special {
			pen = soft
		}
		if most > 0 && shares[i] > 0 {
			fill := mix(paper, warm, 0.75*shares[i]/most)
			draw.Draw(out, b, image.NewUniform(fill), image.Point{}, draw.Src)
		}
		centred(out, face, pen, fit(face, w.Text, b.Dx()-2*padding+1), b, b.Max.Y-padding-2)
		if !w.Special {
			centred(out, small, under, percent(shares[i]), b, b.Max.Y+underline-5)
		}
	}
	return out, nil
}

// lay places words in lines; height is that of all.
func lay(face font.Face, list []Word) (boxes []image.Rectangle, height int) {
	x, y := margin, margin
	for _, w := range list {
		width := min(max(font.MeasureString(face, w.Text).Ceil()+2*padding, 44), stripWidth-2*margin)
		if x > margin && x+width > stripWidth-margin {
			x, y = margin, y+boxHeight+underline+6
		}
		boxes = append(boxes, image.Rect(x, y, x+width, y+boxHeight))
		x += width + 4
	}
	return boxes, y + boxHeight + underline + margin
}

// fit returns s, or as much of it as has a width in pixels.
func fit(face font.Face, s string, width int) string {
	if font.MeasureString(face, s).Ceil() <= width {
		return s
	}
	r := []rune(s)
	for len(r) > 0 && font.MeasureString(face, string(r)+"...").Ceil() > width {
		r = r[:len(r)-1]
	}
	return string(r) + "..."
}

// centred writes s in the middle of a box with its baseline at y.
func centred(out draw.Image, face font.Face, pen color.Color, s string, box image.Rectangle, y int) {
	d := font.Drawer{Dst: out, Src: image.NewUniform(pen), Face: face}
	d.Dot = fixed.P(box.Min.X+(box.Dx()-font.MeasureString(face, s).Ceil())/2, y)
	d.DrawString(s)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func mix(a, b color.RGBA, share float64) color.RGBA {
	c := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-share) + float64(b)*share)) }
	return color.RGBA{c(a.R, b.R), c(a.G, b.G), c(a.B, b.B), 255}
}

// Shares returns the share that each word has of all values above 0, 0 for special ones and where
// there are none.
func Shares(list []Word) []float64 {
	sum, out := 0.0, make([]float64, len(list))
	for i, w := range list {
		if !w.Special {
			out[i] = max(w.Value, 0)
			sum += out[i]
		}
	}
	if sum > 0 {
		for i := range out {
			out[i] /= sum
		}
	}
	return out
}
