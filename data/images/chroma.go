package images

import (
	"image"

	"github.com/geoalign/geoalign/data/internal/pixel"
	"github.com/geoalign/geoalign/data/transform"
)

// Photos store colour at half the resolution of brightness. Go's own conversion
// repeats each colour sample; here colour is interpolated with the weights 3/4
// and 1/4 along each axis, as libjpeg and libwebp do, so that pixels agree with
// the images that published models were trained on.

// fromYCbCr converts brightness and colour differences to RGB. JPEG values use
// the whole range of a byte; those of WebP (video) end at 16 and 235.
func fromYCbCr(src *image.YCbCr, video bool) *transform.Image {
	d := src.Rect
	w := d.Dx()
	m := transform.NewImage(w, d.Dy())
	up := newUpsampler(src)
	if !video && up.dx == 2 && up.cw <= 2 {
		up.smooth = false // as libjpeg repeats the colours of images so narrow
	}
	for y := range d.Dy() {
		cb, cr := up.row(0, src.Cb, y), up.row(1, src.Cr, y)
		luma := src.Y[src.YOffset(d.Min.X, d.Min.Y+y):][:w]
		out := m.Pix[3*w*y : 3*w*(y+1)]
		if !video {
			pixel.YCbCr(out, luma, cb, cr)
			continue
		}
		for x, v := range luma {
			o := out[3*x : 3*x+3 : 3*x+3]
			o[0], o[1], o[2] = videoRGB(int32(v), int32(cb[x]), int32(cr[x]))
		}
	}
	return m
}

// upsampler stretches the colour planes of an image to its full width.
type upsampler struct {
	src    *image.YCbCr
	smooth bool       // interpolate; else repeat
	dx, dy int        // pixels per colour sample
	cw, ch int        // size of the colour planes
	sums   []uint16   // of a row, 4 times the value, with a sample more at either end
	out    [2][]uint8 // a row of either plane at full width
}

func newUpsampler(src *image.YCbCr) *upsampler {
	u := &upsampler{src: src, dx: 1, dy: 1}
	w := src.Rect.Dx()
	switch src.SubsampleRatio {
	case image.YCbCrSubsampleRatio422:
		u.dx = 2
	case image.YCbCrSubsampleRatio420:
		u.dx, u.dy = 2, 2
	case image.YCbCrSubsampleRatio440:
		u.dy = 2
	}
	// 4:4:4 has nothing to interpolate, 4:1:1 and 4:1:0 are rare, and a part of a
	// larger image may begin in the middle of a sample.
	u.smooth = u.dx*u.dy > 1 && src.Rect.Min == image.Point{}
	u.cw = (w + u.dx - 1) / u.dx
	u.ch = (src.Rect.Dy() + u.dy - 1) / u.dy
	u.sums = make([]uint16, u.cw+2)
	for i := range u.out {
		u.out[i] = make([]uint8, u.dx*u.cw)
	}
	return u
}

// row returns row y of the colour plane c at full width, until the next call for
// the same plane (0 or 1).
func (u *upsampler) row(plane int, c []uint8, y int) []uint8 {
	d := u.src.Rect
	if u.src.SubsampleRatio == image.YCbCrSubsampleRatio444 {
		return c[u.src.COffset(d.Min.X, d.Min.Y+y):][:d.Dx()]
	}
	out := u.out[plane]
	if !u.smooth {
		out = out[:d.Dx()]
		for x := range out {
			out[x] = c[u.src.COffset(d.Min.X+x, d.Min.Y+y)]
		}
		return out
	}
	near, far := y/u.dy, y/u.dy
	if u.dy == 2 {
		far = min(max(near-1+2*(y%2), 0), u.ch-1)
	}
	s := u.sums[1 : u.cw+1]
	pixel.Weigh(s, c[near*u.src.CStride:][:u.cw], c[far*u.src.CStride:][:u.cw])
	if u.dx == 1 {
		for i, v := range s {
			out[i] = uint8((v + 2) >> 2)
		}
		return out
	}
	u.sums[0], u.sums[u.cw+1] = s[0], s[u.cw-1]
	pixel.Stretch(out, u.sums)
	return out
}

// videoRGB converts ITU-R BT.601 values, brightness 16 to 235, in fixed point.
func videoRGB(y, cb, cr int32) (r, g, b uint8) {
	const bits = 14
	const half = 1 << (bits - 1)
	l := 19077*(y-16) + half // 255/219
	cb, cr = cb-128, cr-128
	return shift8(l+26149*cr, bits), shift8(l-6419*cb-13320*cr, bits), shift8(l+33050*cb, bits)
}

// shift8 cuts v / 2^bits to the range of a byte.
func shift8(v int32, bits int) uint8 { return uint8(min(max(v>>bits, 0), 255)) }
