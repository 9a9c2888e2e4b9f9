package explain

import (
	"image"
	"image/color"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestRegions: the strongest box is the brightest, on an image, on an empty canvas, and as squares in a row
// where regions have no boxes.
func TestRegions(t *testing.T) {
	boxes := []Box{{0, 0, 0.5, 0.5}, {0.5, 0.5, 1, 1}}
	values := []float64{0.1, 2}
	draw := func(img image.Image, boxes []Box, n int, values []float64) *image.RGBA {
		t.Helper()
		return check.Get(Regions(img, boxes, n, values))(t)
	}
	m := draw(plain(400, 600), boxes, 2, values)
	if m.Rect.Dx() != 400 || m.Rect.Dy() != 600 {
		t.Errorf("size %v", m.Rect)
	}
	if weak, strong, none := warmth(m, 120, 200), warmth(m, 300, 450), warmth(m, 300, 100); strong < 60 || weak > strong/2 || none != 0 {
		t.Errorf("warmth %d and %d of boxes, %d beside them", weak, strong, none)
	}
	if m = draw(plain(400, 600), boxes, 2, nil); m.RGBAAt(300, 100) != (color.RGBA{200, 200, 200, 255}) || m.RGBAAt(399, 450) != plainBox {
		t.Errorf("without values: %v and %v", m.RGBAAt(300, 100), m.RGBAAt(399, 450))
	}
	if m = draw(nil, boxes, 2, values); m.Rect.Dx() != canvasSide || warmth(m, 360, 360) < 60 {
		t.Errorf("canvas %v, warmth %d", m.Rect, warmth(m, 360, 360))
	}
	if m = draw(nil, nil, 15, make([]float64, 15)); m.Rect.Dx() != cellsInRow*cellSide || m.Rect.Dy() != 2*cellSide {
		t.Errorf("squares %v", m.Rect)
	}
	for _, box := range []Box{{0, 0, 0, 0}, {0.999, 0.999, 1, 1}, {1, 1, 1, 1}} {
		draw(plain(1, 1), []Box{box}, 1, []float64{-1})
	}
	draw(nil, nil, 0, nil)
}

// TestHeatmap: cells have the colours of their values, figures where there is room for them, and all
// columns and rows a place.
func TestHeatmap(t *testing.T) {
	h := Heatmap{Rows: []string{"a", "circle", "of a word that is far too long to be written there"}, Columns: []string{"0", "1"}, Values: []float64{0, 1, -2, 4, 2, 3}, Marked: []int{3}}
	if h.Colour(3) != Heat(1) || h.Colour(2) != Heat(0) || h.Colour(4) != Heat(0.5) || (Heatmap{Values: []float64{-1}}).Colour(0) != Heat(0) {
		t.Error("wrong colours")
	}
	if h.Cell(0) != "" || h.Cell(1) != "1.00" || Figure(-0.0001, 3) != "0.000" || Figure(-0.01, 2) != "-0.01" {
		t.Errorf("figures %q, %q, %q", h.Cell(0), h.Cell(1), Figure(-0.0001, 3))
	}
	size := func(h Heatmap) image.Rectangle {
		t.Helper()
		m := check.Get(h.Draw())(t)
		return m.Bounds()
	}
	bare := size(h)
	h.Beside, h.Below = []Figures{{"r", []float64{1, 2, 3}}}, []Figures{{"adds", []float64{4, 5}}}
	if all := size(h); all.Dx() != bare.Dx()+heatFigures || all.Dy() != bare.Dy()+heatRow {
		t.Errorf("%v, with figures %v", bare, all)
	}
	wide := Heatmap{Rows: []string{"a"}, Columns: make([]string, 196), Values: make([]float64, 196), Below: []Figures{{"adds", make([]float64, 196)}}}
	if b := size(wide); wide.Wide() || b.Dx() < 196*heatNarrow || b.Dx() > 196*heatNarrow+200 {
		t.Errorf("many columns: %v", b)
	}
	size(Heatmap{})
}
