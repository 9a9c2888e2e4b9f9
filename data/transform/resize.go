package transform

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// Rect is a rectangle of pixels: X <= x < X+W, Y <= y < Y+H.
type Rect struct{ X, Y, W, H int }

// Resize returns m resized to w x h pixels with Pillow's BICUBIC filter: the
// cubic kernel with a = -0.5, widened by the scale when shrinking (so it
// averages: anti-aliasing), horizontal pass first, rounded to bytes between the
// passes.
func Resize(m *Image, w, h int) (*Image, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if w <= 0 || h <= 0 {
		return nil, fmt.Errorf("transform: size to resize to must be positive (got %dx%d)", w, h)
	}
	out := &Image{}
	new(resizer).resize(out, m, Rect{0, 0, m.W, m.H}, w, h, false)
	return out, nil
}

// resizer keeps the memory of one resize for the next.
type resizer struct {
	horizontal, vertical taps
	rows                 pixel.RowFilter
	middle               []uint8 // between the passes
	sums                 []int32 // of one row
}

// resize writes the part box of src, resized to w x h, to dst, mirrored left to
// right when flip is set. box lies in src.
func (z *resizer) resize(dst, src *Image, box Rect, w, h int, flip bool) {
	dst.reshape(w, h)
	z.vertical.compute(box.H, h)

	// Only rows that the vertical pass reads are made: all of the box.
	from := src.Pix[3*(box.Y*src.W+box.X):]
	stride := 3 * src.W
	if box.W != w {
		z.horizontal.compute(box.W, w)
		if flip {
			z.horizontal.Mirror()
			defer z.horizontal.Mirror()
		}
		z.rows.Set(&z.horizontal.Taps)
		to := dst.Pix
		if box.H != h {
			z.middle = resized(z.middle, 3*w*box.H)
			to = z.middle
		}
		z.rows.Apply(to, from, box.H, stride)
		from, stride = to, 3*w
	}
	switch {
	case box.H != h:
		for y := range h {
			first, k := z.vertical.at(y)
			z.sums = pixel.MixRows(dst.Pix[3*w*y:3*w*(y+1)], from[stride*first:], stride, k, z.sums)
		}
	case box.W == w:
		for y := range h {
			copy(dst.Pix[3*w*y:3*w*(y+1)], from[stride*y:])
		}
	}
	if flip && box.W == w {
		dst.FlipH()
	}
}

// taps are the filter weights of one axis.
type taps struct {
	pixel.Taps
	weights []float64
}

func (t *taps) at(i int) (first int, k []int32) {
	return int(t.First[i]), t.Coef[i*t.Size : i*t.Size+int(t.Num[i])]
}

// compute fills t for an axis of in pixels resized to out pixels.
func (t *taps) compute(in, out int) {
	if t.In == in && t.Out == out {
		return
	}
	t.In, t.Out = in, out
	scale := float64(in) / float64(out)
	wide := max(scale, 1)
	support := 2 * wide
	t.Size = 2*int(math.Ceil(support)) + 1
	t.First = resized(t.First, out)
	t.Num = resized(t.Num, out)
	t.Coef = resized(t.Coef, out*t.Size)
	t.weights = resized(t.weights, t.Size)
	for i := 0; i < out; i++ {
		centre := (float64(i) + 0.5) * scale
		lo := max(int(centre-support+0.5), 0)
		hi := min(int(centre+support+0.5), in)
		sum := 0.0
		for x := lo; x < hi; x++ {
			w := cubic((float64(x) - centre + 0.5) / wide)
			t.weights[x-lo] = w
			sum += w
		}
		t.First[i], t.Num[i] = int32(lo), int32(hi-lo)
		for x := 0; x < hi-lo; x++ {
			t.Coef[i*t.Size+x] = int32(math.Round(t.weights[x] / sum * (1 << pixel.CoefBits)))
		}
	}
}

// cubic is the Keys kernel with a = -0.5, zero outside (-2, 2).
func cubic(x float64) float64 {
	const a = -0.5
	x = math.Abs(x)
	switch {
	case x < 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
