package transform

import (
	"os"
	"testing"
)

// golden reads testdata/name.rgb, made by tools/goldens/transform.py with
// Pillow 13.0.0 and OpenCV 5.0.0.
func golden(t testing.TB, name string, w, h int) *Image {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".rgb")
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != 3*w*h {
		t.Fatalf("%s has %d bytes, want %dx%dx3", name, len(b), w, h)
	}
	return &Image{W: w, H: h, Pix: b}
}

func photo(t testing.TB) *Image { return golden(t, "photo", 40, 30) }

// distance is the largest and the mean difference of two images.
func distance(t *testing.T, a, b *Image) (most int, mean float64) {
	t.Helper()
	if a.W != b.W || a.H != b.H {
		t.Fatalf("size %dx%d, want %dx%d", a.W, a.H, b.W, b.H)
	}
	sum := 0
	for i := range a.Pix {
		d := max(int(a.Pix[i])-int(b.Pix[i]), int(b.Pix[i])-int(a.Pix[i]))
		most = max(most, d)
		sum += d
	}
	return most, float64(sum) / float64(len(a.Pix))
}

func TestResizeLikePillow(t *testing.T) {
	for _, c := range []struct {
		name string
		w, h int
	}{{"resize_16x16", 16, 16}, {"resize_64x48", 64, 48}, {"resize_40x11", 40, 11}, {"resize_7x30", 7, 30}} {
		got, err := Resize(photo(t), c.w, c.h)
		if err != nil {
			t.Fatal(err)
		}
		if most, _ := distance(t, got, golden(t, c.name, c.w, c.h)); most != 0 {
			t.Errorf("%s differs by up to %d", c.name, most)
		}
	}
	var got Image
	new(resizer).resize(&got, photo(t), Rect{5, 3, 21, 17}, 24, 24, false)
	if most, _ := distance(t, &got, golden(t, "crop_5_3_21_17_to_24x24", 24, 24)); most != 0 {
		t.Errorf("resized crop differs by up to %d", most)
	}
}

func TestColorLikePillow(t *testing.T) {
	for name, f := range map[string]func(m *Image) *Image{
		"autocontrast": func(m *Image) *Image { AutoContrast(m); return m },
		"equalize":     func(m *Image) *Image { Equalize(m); return m },
		"brightness":   func(m *Image) *Image { Brightness(m, 1.36); return m },
		"sharpness":    func(m *Image) *Image { d := &Image{}; Sharpness(d, m, 1.36); return d },
	} {
		if most, _ := distance(t, f(photo(t)), golden(t, name, 40, 30)); most != 0 {
			t.Errorf("%s differs by up to %d", name, most)
		}
	}
}

func TestAffineLikeOpenCV(t *testing.T) {
	for name, f := range map[string]func(dst, src *Image){
		"shear_x":     func(dst, src *Image) { ShearX(dst, src, 0.21) },
		"shear_y":     func(dst, src *Image) { ShearY(dst, src, -0.21) },
		"translate_x": func(dst, src *Image) { TranslateX(dst, src, 7) },
		"translate_y": func(dst, src *Image) { TranslateY(dst, src, -7) },
		"rotate":      func(dst, src *Image) { Rotate(dst, src, 21) },
	} {
		var got Image
		f(&got, photo(t))
		most, mean := distance(t, &got, golden(t, name, 40, 30))
		// OpenCV 5 interpolates between exact positions; older ones, as here,
		// between positions rounded to 1/32 pixel.
		if most > 2 || mean > 0.15 {
			t.Errorf("%s differs by up to %d, %.3f in the mean", name, most, mean)
		}
	}
}
