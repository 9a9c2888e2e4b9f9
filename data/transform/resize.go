package transform

import (
	"fmt"
	"math"
)

// Rect is a rectangle of pixels: X <= x < X+W, Y <= y < Y+H.
type Rect struct{ X, Y, W, H int }

// coefBits is the precision of the fixed-point filter weights: 8 bits of pixel
// and 2 bits for the overshoot of the bicubic filter leave 22 of 32.
const coefBits = 22

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
	new(resizer).resize(out, m, Rect{0, 0, m.W, m.H}, w, h)
	return out, nil
}

// resizer keeps the memory of one resize for the next.
type resizer struct {
	horizontal, vertical taps
	middle               []uint8 // between the passes
	sums                 []int32 // of one row
}

// resize writes the part box of src, resized to w x h, to dst. box lies in src.
func (z *resizer) resize(dst, src *Image, box Rect, w, h int) {
	dst.reshape(w, h)
	z.horizontal.compute(box.W, w)
	z.vertical.compute(box.H, h)

	// Only rows that the vertical pass reads are made: all of the box.
	n := 3 * w * box.H
	if cap(z.middle) < n {
		z.middle = make([]uint8, n)
	}
	mid := z.middle[:n]
	for y := 0; y < box.H; y++ {
		from := 3 * ((box.Y+y)*src.W + box.X)
		row := src.Pix[from : from+3*box.W]
		out := mid[3*w*y : 3*w*(y+1)]
		if box.W == w {
			copy(out, row)
			continue
		}
		z.horizontal.row(out, row)
	}
	if box.H == h {
		copy(dst.Pix, mid)
		return
	}
	stride := 3 * w
	for y := 0; y < h; y++ {
		first, k := z.vertical.at(y)
		out := dst.Pix[stride*y : stride*(y+1)]
		base := mid[stride*first:]
		switch len(k) {
		case 4:
			r0, r1, r2, r3 := base[:stride], base[stride:2*stride], base[2*stride:3*stride], base[3*stride:4*stride]
			k0, k1, k2, k3 := k[0], k[1], k[2], k[3]
			for i := range out {
				out[i] = clip8(1<<(coefBits-1) + k0*int32(r0[i]) + k1*int32(r1[i]) + k2*int32(r2[i]) + k3*int32(r3[i]))
			}
		default:
			z.sums = resized(z.sums, stride)
			sums := z.sums
			for i := range sums {
				sums[i] = 1 << (coefBits - 1)
			}
			for j, c := range k {
				for i, v := range base[j*stride : (j+1)*stride] {
					sums[i] += c * int32(v)
				}
			}
			for i, v := range sums {
				out[i] = clip8(v)
			}
		}
	}
}

// taps are the filter weights of one axis: output i is the weighted sum of
// inputs first[i] ... with weights coef[i*size : i*size+num[i]].
type taps struct {
	in, out    int
	size       int
	first, num []int32
	coef       []int32
	weights    []float64
}

func (t *taps) at(i int) (first int, k []int32) {
	return int(t.first[i]), t.coef[i*t.size : i*t.size+int(t.num[i])]
}

// compute fills t for an axis of in pixels resized to out pixels.
func (t *taps) compute(in, out int) {
	if t.in == in && t.out == out {
		return
	}
	t.in, t.out = in, out
	scale := float64(in) / float64(out)
	wide := max(scale, 1)
	support := 2 * wide
	t.size = 2*int(math.Ceil(support)) + 1
	t.first = resized(t.first, out)
	t.num = resized(t.num, out)
	t.coef = resized(t.coef, out*t.size)
	t.weights = resized(t.weights, t.size)
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
		t.first[i], t.num[i] = int32(lo), int32(hi-lo)
		for x := 0; x < hi-lo; x++ {
			t.coef[i*t.size+x] = int32(math.Round(t.weights[x] / sum * (1 << coefBits)))
		}
	}
}

// row filters one row of RGB pixels.
func (t *taps) row(out, in []uint8) {
	for i := 0; i < t.out; i++ {
		first, k := t.at(i)
		r, g, b := int32(1<<(coefBits-1)), int32(1<<(coefBits-1)), int32(1<<(coefBits-1))
		px := in[3*first : 3*(first+len(k))]
		for j, c := range k {
			p := px[3*j : 3*j+3 : 3*j+3]
			r += c * int32(p[0])
			g += c * int32(p[1])
			b += c * int32(p[2])
		}
		o := out[3*i : 3*i+3 : 3*i+3]
		o[0], o[1], o[2] = clip8(r), clip8(g), clip8(b)
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

// clip8 turns a fixed-point sum into a byte.
func clip8(v int32) uint8 {
	v >>= coefBits
	if uint32(v) > 255 {
		if v < 0 {
			return 0
		}
		return 255
	}
	return uint8(v)
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
