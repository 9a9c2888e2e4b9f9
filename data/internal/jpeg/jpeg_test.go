package jpeg

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// same reports how an image differs from that of image/jpeg, "" if it does not.
func same(got, want image.Image) string {
	if got.Bounds() != want.Bounds() {
		return "size"
	}
	switch g := got.(type) {
	case *image.Gray:
		w, ok := want.(*image.Gray)
		if !ok {
			return "kind"
		}
		for y := range g.Rect.Dy() {
			if !bytes.Equal(g.Pix[y*g.Stride:][:g.Rect.Dx()], w.Pix[y*w.Stride:][:g.Rect.Dx()]) {
				return "grey"
			}
		}
	case *image.YCbCr:
		w, ok := want.(*image.YCbCr)
		if !ok || g.SubsampleRatio != w.SubsampleRatio {
			return "kind"
		}
		for y := range g.Rect.Dy() {
			if !bytes.Equal(g.Y[y*g.YStride:][:g.Rect.Dx()], w.Y[y*w.YStride:][:g.Rect.Dx()]) {
				return "brightness"
			}
			for x := range g.Rect.Dx() {
				a, b := g.COffset(x, y), w.COffset(x, y)
				if g.Cb[a] != w.Cb[b] || g.Cr[a] != w.Cr[b] {
					return "colour"
				}
			}
		}
	default:
		return "kind"
	}
	return ""
}

// compare decodes a file both ways. Decode must not accept what image/jpeg refuses.
func compare(t *testing.T, d *Decoder, b []byte) (fast bool) {
	t.Helper()
	cfg, err := jpeg.DecodeConfig(bytes.NewReader(b))
	if err != nil || cfg.Width*cfg.Height > 1<<18 {
		return false
	}
	got := d.Decode(b, cfg.Width, cfg.Height)
	if got == nil {
		return false
	}
	want, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("image/jpeg refuses a file of %d bytes: %v", len(b), err)
	}
	if diff := same(got, want); diff != "" {
		t.Fatalf("%v pixels differ in %s from those of image/jpeg", got.Bounds(), diff)
	}
	return true
}

// photo is a picture with edges, slopes and noise.
func photo(r *rand.Rand, w, h int, grey bool) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	g := image.NewGray(m.Rect)
	a, b := r.IntN(9), 1+r.IntN(60)
	for y := range h {
		for x := range w {
			v := a*x + y + r.IntN(b)
			if x/7%2 == y/5%2 {
				v = 255 - v
			}
			m.SetRGBA(x, y, color.RGBA{uint8(v), uint8(2*v + x), uint8(y - v), 255})
			g.SetGray(x, y, color.Gray{uint8(v)})
		}
	}
	if grey {
		return g
	}
	return m
}

func encoded(m image.Image, quality int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Files of Go's encoder, of every size up to several units and any quality.
func TestLikeImageJPEG(t *testing.T) {
	var d Decoder
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		w, h, q := 1+r.IntN(70), 1+r.IntN(50), 1+r.IntN(100)
		if !compare(t, &d, encoded(photo(r, w, h, i%4 == 0), q)) {
			t.Errorf("%dx%d at quality %d is left to image/jpeg", w, h, q)
		}
	}
}

// Files of Pillow (tools/goldens/images.py), in the ways that photos are stored.
func TestFilesOfPillow(t *testing.T) {
	var d Decoder
	paths, err := filepath.Glob("testdata/*.jpg")
	if err != nil || len(paths) < 9 {
		t.Fatalf("%d files, want 9 or more (%v)", len(paths), err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		// What image/jpeg refuses, progressive files with restart markers, is left to it.
		own := filepath.Base(p) != "progressive_restart.jpg"
		if got := compare(t, &d, b); got != own {
			t.Errorf("%s: decoded %v, want %v", p, got, own)
		}
	}
}

// Damage in any byte must lead to what image/jpeg makes of it, or to no result.
func TestDamaged(t *testing.T) {
	var d Decoder
	paths, _ := filepath.Glob("testdata/*.jpg")
	r := rand.New(rand.NewPCG(3, 4))
	passed := 0
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			c := bytes.Clone(b)
			for range 1 + r.IntN(3) {
				c[r.IntN(len(c))] = byte(r.Uint32())
			}
			if r.IntN(4) == 0 {
				c = c[:r.IntN(len(c))]
			}
			if compare(t, &d, c) {
				passed++
			}
		}
	}
	t.Logf("%d damaged files pass, in both decoders alike", passed)
}

func TestNothingAllocated(t *testing.T) {
	b := encoded(photo(rand.New(rand.NewPCG(1, 1)), 100, 70, false), 80)
	var d Decoder
	if n := testing.AllocsPerRun(20, func() {
		if d.Decode(b, 100, 70) == nil {
			t.Fatal("left to image/jpeg")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTooManyScans(t *testing.T) {
	b, err := os.ReadFile("testdata/progressive420.jpg")
	if err != nil {
		t.Fatal(err)
	}
	if TooManyScans(b) {
		t.Error("a common file has too many scans")
	}
	// The last scan once more and once more.
	at := bytes.LastIndex(b, []byte{0xff, 0xda})
	last := b[at : len(b)-2]
	for _, c := range []struct {
		more int
		want bool
	}{{MostScans - 20, false}, {MostScans, true}} {
		bomb := append(append(bytes.Clone(b[:at]), bytes.Repeat(last, c.more)...), 0xff, 0xd9)
		if got := TooManyScans(bomb); got != c.want {
			t.Errorf("%d scans more: got %v", c.more, got)
		}
	}
	for n := range b {
		TooManyScans(b[:n]) // must not panic
	}
}

// FuzzDecode compares any input with image/jpeg: nothing is accepted that it refuses, and all pixels are its own.
func FuzzDecode(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.jpg")
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(encoded(photo(rand.New(rand.NewPCG(5, 6)), 20, 20, false), 50))
	var d Decoder
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		TooManyScans(b)
		compare(t, &d, b)
	})
}
