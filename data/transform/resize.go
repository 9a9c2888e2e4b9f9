package transform

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/data/internal/pixel"
	"github.com/geoalign/geoalign/internal/bicubic"
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
	new(resizer).resize(out, m, whole(m), Window{W: w, H: h, Width: w, Height: h}, false)
	return out, nil
}

// whole is all of an image.
func whole(m *Image) Rect { return Rect{0, 0, m.W, m.H} }

// Window is a part of a resized image, Width x Height pixels from (X, Y) on, of W x H.
type Window struct{ W, H, X, Y, Width, Height int }

// resizer keeps the memory of one resize for the next.
type resizer struct {
	bilinear             bool // Pillow's BILINEAR filter instead of BICUBIC
	horizontal, vertical taps
	rows                 pixel.RowFilter
	middle               []uint8 // a band of the rows between the passes
	sums                 []int32 // of one row
}

// resize writes the part box of src, resized to the window's whole, to dst as far as the
// window shows it, mirrored left to right when flip is set. box lies in src.
func (z *resizer) resize(dst, src *Image, box Rect, to Window, flip bool) {
	if to.W == box.W { // no pass, so what is not shown is not read
		box.X, box.W, to.X, to.W = box.X+to.X, to.Width, 0, to.Width
	}
	if to.H == box.H {
		box.Y, box.H, to.Y, to.H = box.Y+to.Y, to.Height, 0, to.Height
	}
	w, h := to.Width, to.Height
	dst.reshape(w, h)
	from := src.Pix[3*(box.Y*src.W+box.X):]
	if box.W != to.W {
		z.horizontal.compute(axis{box.W, to.W, to.X, w, z.bilinear})
		if flip {
			z.horizontal.Mirror()
			defer z.horizontal.Mirror()
		}
		z.rows.Set(&z.horizontal.Taps)
	}
	switch {
	case box.H != to.H:
		z.vertical.compute(axis{box.H, to.H, to.Y, h, z.bilinear})
		if box.W != to.W {
			z.bands(dst, from, 3*src.W)
			break
		}
		for y := range h {
			z.mix(dst, y, from, 3*src.W, 0)
		}
	case box.W != to.W:
		z.rows.Apply(dst.Pix, from, h, 3*src.W)
	default:
		for y := range h {
			copy(dst.Pix[3*w*y:3*w*(y+1)], from[3*src.W*y:])
		}
	}
	if flip && box.W == to.W {
		dst.FlipH()
	}
}

// bandBytes is how much of the rows between the passes is made at a time: what a processor's cache holds.
const bandBytes = 256 << 10

// bands makes both passes, with no more rows between them than bandBytes hold, or a row of dst needs if that is more: a
// picture of one column and many rows would otherwise become one of as many rows and all columns of dst.
func (z *resizer) bands(dst *Image, from []uint8, stride int) {
	row := 3 * dst.W
	rows := max(bandBytes/row, 2*z.vertical.Size) // of them, less than Size are kept from the band before
	rows = min(rows+rows%2, z.vertical.In)        // rows are made in pairs
	z.middle = resized(z.middle, row*rows+1)      // one that Apply may write
	begin, end := 0, 0                            // rows of the source that are in middle
	for y := range dst.H {
		first, k := z.vertical.at(y)
		if need := first + len(k); need > end {
			kept := max(end-first, 0)
			copy(z.middle, z.middle[row*(end-kept-begin):row*(end-begin)])
			begin, end = first, min(first+rows, z.vertical.In)
			z.rows.Apply(z.middle[row*kept:], from[stride*(begin+kept):], end-begin-kept, stride)
		}
		z.mix(dst, y, z.middle, row, begin)
	}
}

// mix writes row y of dst, the sum of its rows of the source, which begins in from with the given one.
func (z *resizer) mix(dst *Image, y int, from []uint8, stride, begin int) {
	first, k := z.vertical.at(y)
	row := 3 * dst.W
	z.sums = pixel.MixRows(dst.Pix[row*y:row*(y+1)], from[stride*(first-begin):], stride, k, z.sums)
}

// axis is an axis of in pixels resized to out pixels, of which n from the given one on are
// made.
type axis struct {
	in, out, from, n int
	bilinear         bool
}

// taps are the filter weights of one axis.
type taps struct {
	pixel.Taps
	of      axis
	weights []float64
}

func (t *taps) at(i int) (first int, k []int32) {
	return int(t.First[i]), t.Coef[i*t.Size : i*t.Size+int(t.Num[i])]
}

// compute fills t for an axis.
func (t *taps) compute(of axis) {
	if t.of == of {
		return
	}
	t.of, t.In, t.Out = of, of.in, of.n
	scale := float64(of.in) / float64(of.out)
	kernel, radius := bicubic.Kernel, float64(bicubic.Radius)
	if of.bilinear {
		kernel, radius = triangle, 1
	}
	t.Size = 2*int(math.Ceil(radius*max(scale, 1))) + 1
	t.First = resized(t.First, of.n)
	t.Num = resized(t.Num, of.n)
	t.Coef = resized(t.Coef, of.n*t.Size)
	for i := range of.n {
		first := 0
		first, t.weights = bicubic.Smooth(t.weights, of.from+i, scale, of.in, kernel, radius)
		t.First[i], t.Num[i] = int32(first), int32(len(t.weights))
		for x, w := range t.weights {
			t.Coef[i*t.Size+x] = int32(math.Round(w * (1 << pixel.CoefBits)))
		}
	}
}

// triangle is the kernel of bilinear resampling.
func triangle(x float64) float64 { return max(0, 1-math.Abs(x)) }

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
