// Package preview lays pictures and their captions out on one sheet, so that a
// person can see what a model is going to be trained on.
package preview

import (
	"image"
	"image/color"
	"strings"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"github.com/geoalign/geoalign/internal/typeface"
)

// Layout of a sheet in pixels.
const (
	tileWidth = 192 // pictures are scaled to fit a square of this side
	gap       = 16
	fontSize  = 13
	lineSpace = 17
	maxLines  = 8 // longer captions end in an ellipsis
)

var (
	paper = color.RGBA{246, 246, 248, 255}
	ink   = color.RGBA{32, 32, 36, 255}
	frame = color.RGBA{200, 200, 206, 255}
)

// ContactSheet returns one picture with all images in rows of columns tiles,
// each with its caption wrapped beneath it. Missing captions are left blank; a
// nil image gives an empty frame. Small pictures are enlarged without
// smoothing, so that single pixels can be seen; large ones are reduced.
// columns < 1 means 1.
func ContactSheet(images []image.Image, captions []string, columns int) (image.Image, error) {
	face, err := typeface.New(fontSize)
	if err != nil {
		return nil, err
	}
	columns = max(1, min(columns, max(1, len(images))))
	rows := (len(images) + columns - 1) / columns

	lines := make([][]string, len(images))
	heights := make([]int, rows)
	for i := range images {
		if i < len(captions) {
			lines[i] = wrap(face, captions[i], tileWidth)
		}
		h := tileWidth + lineSpace*len(lines[i]) + 6
		heights[i/columns] = max(heights[i/columns], h)
	}
	height := gap
	for _, h := range heights {
		height += h + gap
	}
	sheet := image.NewRGBA(image.Rect(0, 0, gap+columns*(tileWidth+gap), height))
	draw.Draw(sheet, sheet.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)

	y := gap
	for i, img := range images {
		if i > 0 && i%columns == 0 {
			y += heights[i/columns-1] + gap
		}
		x := gap + i%columns*(tileWidth+gap)
		drawTile(sheet, img, image.Rect(x, y, x+tileWidth, y+tileWidth))
		pen := font.Drawer{Dst: sheet, Src: image.NewUniform(ink), Face: face}
		for n, line := range lines[i] {
			pen.Dot = fixed.P(x, y+tileWidth+lineSpace*(n+1))
			pen.DrawString(line)
		}
	}
	return sheet, nil
}

// drawTile scales img to the largest size of its aspect ratio within r.
func drawTile(sheet *image.RGBA, img image.Image, r image.Rectangle) {
	draw.Draw(sheet, r.Inset(-1), image.NewUniform(frame), image.Point{}, draw.Src)
	draw.Draw(sheet, r, image.NewUniform(paper), image.Point{}, draw.Src)
	if img == nil || img.Bounds().Empty() {
		return
	}
	b := img.Bounds()
	w, h := r.Dx(), r.Dy()
	if b.Dx() > b.Dy() {
		h = max(1, w*b.Dy()/b.Dx())
	} else {
		w = max(1, h*b.Dx()/b.Dy())
	}
	x, y := r.Min.X+(r.Dx()-w)/2, r.Min.Y+(r.Dy()-h)/2
	var scaler draw.Scaler = draw.CatmullRom
	if b.Dx() <= w && b.Dy() <= h {
		scaler = draw.NearestNeighbor
	}
	scaler.Scale(sheet, image.Rect(x, y, x+w, y+h), img, b, draw.Over, nil)
}

// wrap breaks text at spaces into lines of at most width pixels. A word wider
// than a line is broken inside.
func wrap(face font.Face, text string, width int) []string {
	fits := func(s string) bool { return font.MeasureString(face, s).Ceil() <= width }
	var lines []string
	line := ""
	flush := func() {
		if line != "" {
			lines = append(lines, line)
			line = ""
		}
	}
	for _, word := range strings.Fields(text) {
		if line != "" && fits(line+" "+word) {
			line += " " + word
			continue
		}
		flush()
		for !fits(word) {
			runes := []rune(word)
			n := len(runes) - 1
			for n > 1 && !fits(string(runes[:n])) {
				n--
			}
			if n < 1 {
				break
			}
			lines = append(lines, string(runes[:n]))
			word = string(runes[n:])
		}
		line = word
	}
	flush()
	if len(lines) > maxLines {
		lines = lines[:maxLines]
		last := []rune(lines[maxLines-1])
		for len(last) > 0 && !fits(string(last)+"...") {
			last = last[:len(last)-1]
		}
		lines[maxLines-1] = string(last) + "..."
	}
	return lines
}
