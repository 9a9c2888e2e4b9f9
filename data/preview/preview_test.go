package preview

import (
	"image"
	"image/color"
	"image/draw"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"image/png"

	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/internal/typeface"
)

// filled returns a w x h picture of one colour.
func filled(w, h int, c color.Color) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(m, m.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
	return m
}

func sheet(t *testing.T, images []image.Image, captions []string, columns int) image.Image {
	t.Helper()
	m, err := ContactSheet(images, captions, columns)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLayout(t *testing.T) {
	red := color.RGBA{255, 0, 0, 255}
	wide := filled(400, 100, red)
	m := sheet(t, []image.Image{wide, nil, filled(8, 8, red)}, []string{"one line"}, 2)
	// Two columns and two rows, the first row with one line of text.
	wantW, wantH := 3*gap+2*tileWidth, 3*gap+2*(tileWidth+6)+lineSpace
	if b := m.Bounds(); b.Dx() != wantW || b.Dy() != wantH {
		t.Errorf("sheet is %v, want %d x %d", b, wantW, wantH)
	}
	at := func(x, y int) bool { r, g, _, _ := m.At(x, y).RGBA(); return r > 0xf000 && g < 0x1000 }
	mid := gap + tileWidth/2
	second := 2*gap + tileWidth + 6 + lineSpace + tileWidth/2
	for _, c := range []struct {
		x, y int
		red  bool
	}{
		{mid, mid, true},
		{mid, gap + 20, false},                   // above the wide picture: 192 x 48
		{mid, mid + 30, false},                   // below it
		{mid + tileWidth + gap, mid, false},      // nil image
		{mid, second, true},                      // small picture, enlarged
		{gap + 2, second, true},                  // to the tile's edge
		{mid + tileWidth + gap, second, false},   // no fourth tile
		{gap + tileWidth + gap/2, second, false}, // gap
	} {
		if at(c.x, c.y) != c.red {
			t.Errorf("pixel (%d, %d) red: %v, want %v", c.x, c.y, !c.red, c.red)
		}
	}
}

func TestCaptionLeavesInk(t *testing.T) {
	count := func(caption string) int {
		m := sheet(t, []image.Image{nil}, []string{caption}, 1)
		n := 0
		for y := gap + tileWidth + 2; y < m.Bounds().Max.Y; y++ {
			for x := range m.Bounds().Dx() {
				if r, _, _, _ := m.At(x, y).RGBA(); r < 0x6000 {
					n++
				}
			}
		}
		return n
	}
	if short, long := count("a cat"), count("a cat and a dog and a horse"); short < 20 || long < 2*short {
		t.Errorf("dark pixels: %d for the short caption, %d for the long one", short, long)
	}
}

func TestWrap(t *testing.T) {
	face, err := typeface.New(fontSize)
	if err != nil {
		t.Fatal(err)
	}
	text := "a small red circle at the top left and a big blue star in the centre"
	lines := wrap(face, text, tileWidth)
	if len(lines) < 2 || strings.Join(lines, " ") != text {
		t.Errorf("lines %q", lines)
	}
	word := strings.Repeat("w", 60)
	if lines = wrap(face, "x "+word, tileWidth); lines[0] != "x" || strings.Join(lines[1:], "") != word {
		t.Errorf("long word: %q", lines)
	}
	if lines = wrap(face, strings.Repeat("many words ", 100), tileWidth); len(lines) != maxLines || !strings.HasSuffix(lines[maxLines-1], "...") {
		t.Errorf("long caption: %q", lines)
	}
	if lines = wrap(face, " ", tileWidth); len(lines) != 0 {
		t.Errorf("blank: %q", lines)
	}
	if lines = wrap(face, "ab", 1); strings.Join(lines, "") != "ab" {
		t.Errorf("narrow: %q", lines)
	}
}

// A sheet of scenes, written next to the test's other output for a look with
// PREVIEW_SHEET=file.png.
func TestSheetOfScenes(t *testing.T) {
	w, err := scenes.New(scenes.Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var images []image.Image
	var captions []string
	for i := range 24 {
		s := w.Train(uint64(i))
		images = append(images, s.Render(64+64*(i%3)*(i%2)))
		captions = append(captions, s.Captions()[i%4])
	}
	path := os.Getenv("PREVIEW_SHEET")
	if path == "" {
		path = filepath.Join(t.TempDir(), "sheet.png")
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, sheet(t, images, captions, 6)); err != nil {
		t.Fatal(err)
	}
}

func TestEmptySheet(t *testing.T) {
	if b := sheet(t, nil, nil, 0).Bounds(); b.Empty() {
		t.Errorf("bounds %v", b)
	}
}
