package explain

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

func plain(w, h int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(m, m.Rect, image.NewUniform(color.RGBA{200, 200, 200, 255}), image.Point{}, draw.Src)
	return m
}

// warmth is how much a pixel is coloured.
func warmth(m *image.RGBA, x, y int) int {
	c := m.RGBAAt(x, y)
	return int(max(c.R, c.G, c.B)) - int(min(c.R, c.G, c.B))
}

// TestOverlay: heat lies over the patch that has it, within the part that was seen, at the size of the
// image or a whole multiple.
func TestOverlay(t *testing.T) {
	one := Map{Values: []float64{0, -5, 0, 1}, Rows: 2, Columns: 2} // at the bottom right
	m := Overlay(plain(400, 600), one, 0, 0, 400, 600)
	if m.Rect.Dx() != 400 || m.Rect.Dy() != 600 {
		t.Errorf("size %v", m.Rect)
	}
	if at, else1, else2 := warmth(m, 300, 450), warmth(m, 100, 150), warmth(m, 300, 100); at < 60 || else1 > 5 || else2 > 5 {
		t.Errorf("warmth %d at the patch, %d and %d elsewhere", at, else1, else2)
	}
	// A crop: the middle third of a wide image was seen.
	m = Overlay(plain(900, 400), one, 300, 0, 300, 400)
	if m.RGBAAt(100, 200).R > 100 || m.RGBAAt(800, 200).R > 100 || warmth(m, 525, 300) < 60 {
		t.Errorf("unseen %v and %v, patch %v", m.RGBAAt(100, 200), m.RGBAAt(800, 200), m.RGBAAt(525, 300))
	}
	if m = Overlay(plain(48, 100), one, 0, 0, 48, 100); m.Rect.Dx() != 336 || m.Rect.Dy() != 700 {
		t.Errorf("a small image became %v", m.Rect)
	}
	if b := Enlarged(plain(500, 3)).Bounds(); b.Dx() != 1500 || b.Dy() != 9 {
		t.Errorf("a long image became %v", b)
	}
	if b := Enlarged(plain(5000, 3)).Bounds(); b.Dx() != 5000 {
		t.Errorf("a very long image became %v", b)
	}
	dark := Overlay(plain(320, 320), Map{Values: []float64{-1}, Rows: 1, Columns: 1}, 0, 0, 320, 320)
	if warmth(dark, 160, 160) != 0 {
		t.Error("heat without anything above 0")
	}
	if b := Reduced(plain(3000, 10), 500).Bounds(); b.Dx() != 500 || b.Dy() != 1 {
		t.Errorf("reduced to %v", b)
	}
}

// TestHeat: the scale grows lighter all the way, so that it reads without colours.
func TestHeat(t *testing.T) {
	last := -1.0
	for i := range 101 {
		c := Heat(float64(i) / 100)
		light := 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B)
		if light < last {
			t.Errorf("darker at %d", i)
		}
		last = light
	}
	if Heat(-1) != Heat(0) || Heat(2) != Heat(1) {
		t.Error("values outside are not cut")
	}
}

// TestStrip: words wrap, long ones are cut, special ones have no share.
func TestStrip(t *testing.T) {
	list := []Word{{Text: "[CLS]", Value: 9, Special: true}, {Text: "red", Value: 3}, {Text: "a", Value: -1}, {Text: "circle", Value: 1}}
	shares := Shares(list)
	if shares[0] != 0 || shares[1] != 0.75 || shares[2] != 0 || shares[3] != 0.25 {
		t.Errorf("shares %v", shares)
	}
	small := check.Get(Strip(list))(t)
	for range 40 {
		list = append(list, Word{Text: "words", Value: 1}, Word{Text: string(make([]rune, 200)), Value: math.SmallestNonzeroFloat64})
	}
	large, err := Strip(list)
	if err != nil || large.Bounds().Dx() != small.Bounds().Dx() || large.Bounds().Dy() < 5*small.Bounds().Dy() {
		t.Errorf("%v and %v, %v", small.Bounds(), large.Bounds(), err)
	}
	if _, err := Strip(nil); err != nil {
		t.Error(err)
	}
}

// TestHeatOfNoNumber: values that are not finite, as of a model that has diverged, have a colour too.
func TestHeatOfNoNumber(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		h := Heatmap{Rows: []string{"a"}, Columns: []string{"b", "c"}, Values: []float64{bad, 1}}
		for i := range h.Values {
			if c := h.Colour(i); c.A != 255 {
				t.Errorf("%v: value %d has the colour %v", bad, i, c)
			}
		}
		img := image.NewGray(image.Rect(0, 0, 4, 4))
		if b := Overlay(img, Map{Values: []float64{bad, 1, 0, 2}, Rows: 2, Columns: 2}, 0, 0, 4, 4).Bounds(); b.Empty() {
			t.Errorf("%v: no picture", bad)
		}
	}
	if got, want := Heat(math.NaN()), Heat(0); got != want {
		t.Errorf("NaN has the colour %v, want %v", got, want)
	}
}
