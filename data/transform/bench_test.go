package transform

import "testing"

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
				z.resize(&out, m, Rect{0, 0, c.w, c.h}, 256, 256, false)
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
