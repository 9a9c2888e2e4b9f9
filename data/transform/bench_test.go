package transform

import (
	"testing"

	"github.com/geoalign/geoalign/internal/rng"
)

// BenchmarkResize is the cost of making 256 x 256 pixels of a picture.
func BenchmarkResize(b *testing.B) {
	for _, c := range []struct {
		name string
		w, h int
	}{{"from128x128", 128, 128}, {"from200x180", 200, 180}, {"from500x375", 500, 375}, {"from1500x1000", 1500, 1000}} {
		b.Run(c.name, func(b *testing.B) {
			m := noise(c.w, c.h)
			var z resizer
			var out Image
			for b.Loop() {
				z.resize(&out, m, Rect{0, 0, c.w, c.h}, square(256), false)
			}
			b.SetBytes(int64(len(m.Pix)))
		})
	}
}

// BenchmarkNormalize is the cost of the last stage for 256 x 256 pixels.
func BenchmarkNormalize(b *testing.B) {
	m := noise(256, 256)
	dst := make([]float32, len(m.Pix))
	for b.Loop() {
		Normalize(m, dst)
	}
	b.SetBytes(int64(5 * len(m.Pix)))
}

// BenchmarkColour is the cost of the colour operations on 96 x 96 pixels, and of the
// whole pipeline from a picture of 128 x 128 without and with them.
func BenchmarkColour(b *testing.B) {
	m := natural(96, 96)
	for _, name := range []string{"brightness_0.6", "contrast_1.4", "saturation_1.4", "hue_0.1", "gray", "blur_1", "blur_2"} {
		f := colourOps[name]
		if name[:4] == "blur" {
			var z blurrer
			sigma := float64(name[5] - '0')
			f = func(m *Image) { z.gaussian(m, sigma) }
		}
		b.Run(name, func(b *testing.B) {
			c := m.Clone()
			for b.Loop() {
				copy(c.Pix, m.Pix)
				f(c)
			}
		})
	}
	src := natural(128, 128)
	dst := make([]float32, 3*96*96)
	plain := Train{Size: 96, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}
	full := plain
	full.Jitter, full.Gray, full.Blur = 0.8, 0.2, 0.5
	moco := full
	moco.Ops = 0
	for _, c := range []struct {
		name string
		t    Train
	}{{"plain", plain}, {"tcl", full}, {"moco", moco}} {
		b.Run("pipeline/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			i := uint64(0)
			for b.Loop() {
				i++
				if err := c.t.Apply(src, rng.New(1, rng.Augment, i), dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// natural is a picture with gradients and a little noise: hues like those of a photo.
func natural(w, h int) *Image {
	m := noise(w, h)
	for y := range h {
		for x := range w {
			p := m.Pix[3*(y*w+x):][:3]
			p[0], p[1], p[2] = uint8(20+x%200)+p[0]/16, uint8(200-y%180)+p[1]/16, uint8(60+(x+y)%150)+p[2]/16
		}
	}
	return m
}
