package transform

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/filetest"
)

// golden reads testdata/name.rgb, made by tools/goldens/transform.py with
// Pillow 13.0.0 and OpenCV 5.0.0.
func golden(t testing.TB, name string, w, h int) *Image {
	t.Helper()
	b := filetest.Read(t, "testdata/"+name+".rgb")
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
	new(resizer).resize(&got, photo(t), Rect{5, 3, 21, 17}, square(24), false)
	if most, _ := distance(t, &got, golden(t, "crop_5_3_21_17_to_24x24", 24, 24)); most != 0 {
		t.Errorf("resized crop differs by up to %d", most)
	}
}

// TestInputsLikeTorchvision: an image as an evaluation pipeline shows it.
func TestInputsLikeTorchvision(t *testing.T) {
	tall := NewImage(30, 40)
	p := photo(t)
	for y := range 40 {
		for x := range 30 {
			copy(tall.Pix[3*(y*30+x):][:3], p.Pix[3*(x*40+y):][:3])
		}
	}
	for _, c := range []struct {
		name string
		of   *Image
		size int
		Input
	}{
		{"bilinear_16x16", p, 16, Input{Bilinear: true}},
		{"bilinear_50x50", p, 50, Input{Bilinear: true}},
		{"centre_16x16", p, 16, Input{Crop: true}},
		{"centre_30x30", p, 30, Input{Crop: true}},
		{"centre_45x45", p, 45, Input{Crop: true}},
		{"centre_bilinear_17x17", p, 17, Input{Crop: true, Bilinear: true}},
		{"centre_21_16x16", p, 16, Input{Crop: true, Resized: 21}},
		{"squash_21_16x16", p, 16, Input{Resized: 21}},
		{"centre_tall_17x17", tall, 17, Input{Crop: true}},
	} {
		c.Mean, c.Std = [3]float32{}, [3]float32{1, 1, 1}
		got, planes := NewImage(c.size, c.size), make([]float32, 3*c.size*c.size)
		for _, flip := range []bool{false, true} {
			var err error
			if flip { // the training pipeline shows the same, mirrored or not
				err = Train{Input: c.Input, Size: c.size, ScaleMin: 1}.Apply(c.of, nil, planes)
			} else {
				err = Eval{Input: c.Input, Size: c.size}.Apply(c.of, nil, planes)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range planes {
				got.Pix[3*(i%(c.size*c.size))+i/(c.size*c.size)] = uint8(v*255 + 0.5)
			}
			if most, _ := distance(t, got, golden(t, c.name, c.size, c.size)); most != 0 {
				t.Errorf("%s differs by up to %d", c.name, most)
			}
		}
	}
}

// TestWindowIsACrop: a window of a resized image has the bytes of the image resized and then cut.
func TestWindowIsACrop(t *testing.T) {
	p := photo(t)
	for _, c := range []struct {
		w, h int
		at   Window
	}{
		{64, 48, Window{W: 64, H: 48, X: 5, Y: 7, Width: 30, Height: 40}},
		{40, 48, Window{W: 40, H: 48, X: 5, Y: 7, Width: 30, Height: 40}},
		{64, 30, Window{W: 64, H: 30, X: 60, Y: 2, Width: 4, Height: 27}},
		{40, 30, Window{W: 40, H: 30, X: 3, Y: 2, Width: 24, Height: 24}},
	} {
		whole, err := Resize(p, c.w, c.h)
		if err != nil {
			t.Fatal(err)
		}
		want := NewImage(c.at.Width, c.at.Height)
		for y := range want.H {
			copy(want.Pix[3*y*want.W:3*(y+1)*want.W], whole.Pix[3*((y+c.at.Y)*c.w+c.at.X):])
		}
		for _, flip := range []bool{false, true} {
			if flip {
				want.FlipH()
			}
			var got Image
			new(resizer).resize(&got, p, Rect{0, 0, p.W, p.H}, c.at, flip)
			if most, _ := distance(t, &got, want); most != 0 {
				t.Errorf("%+v, mirrored %v, differs by up to %d", c.at, flip, most)
			}
		}
	}
}

// TestNormalizeByStatistics compares with the formula, there and back.
func TestNormalizeByStatistics(t *testing.T) {
	p := photo(t)
	in := Input{Mean: [3]float32{0.5, 0.4, 0.3}, Std: [3]float32{0.5, 0.25, 0.2}}
	dst := make([]float32, len(p.Pix))
	in.Normalize(p, dst)
	for i, v := range dst {
		c, at := i/(p.W*p.H), i%(p.W*p.H)
		if want := (float32(p.Pix[3*at+c])/255 - in.Mean[c]) / in.Std[c]; !(math.Abs(float64(v-want)) <= 1e-6) {
			t.Fatalf("value %d is %v, want %v", i, v, want)
		}
	}
	back, err := in.Denormalize(dst, p.W, p.H)
	if err != nil {
		t.Fatal(err)
	}
	if most, _ := distance(t, back, p); most != 0 {
		t.Errorf("there and back differs by up to %d", most)
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
