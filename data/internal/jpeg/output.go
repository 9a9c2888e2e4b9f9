package jpeg

import "github.com/geoalign/geoalign/data/internal/pixel"

// upsampling is how samples become pixels: by weights of 3/4 and 1/4 where there are half as many along one axis
// or both, else each for all of its pixels.
type upsampling uint8

const (
	upNone upsampling = iota
	upH               // half as many across
	upV               // half as many down
	upBoth
	upBox
)

// upsamplingOf is that of h x v pixels a sample, of which a row has so many.
func upsamplingOf(h, v, columns int) upsampling {
	switch {
	case h == 1 && v == 1:
		return upNone
	case h == 2 && v == 1 && columns > 2:
		return upH
	case h == 1 && v == 2:
		return upV
	case h == 2 && v == 2 && columns > 2:
		return upBoth
	}
	return upBox
}

// line is the row y of samples of a component.
func (c *component) line(y int) []uint8 {
	y = min(max(y, 0), c.rows-1)
	return c.plane[y%c.ring*c.stride:][:c.columns]
}

// pixels are the samples of a component for the row y of the picture.
func (d *Decoder) pixels(c *component, y int) []uint8 {
	switch c.up {
	case upNone:
		return c.line(y)
	case upH:
		pixel.StretchRow(c.row, c.line(y))
	case upV:
		far, bias := y/2-1, uint16(1)
		if y%2 == 1 {
			far, bias = y/2+1, 2
		}
		near := c.line(y / 2)
		for i, v := range c.line(far) {
			c.row[i] = uint8((3*uint16(near[i]) + uint16(v) + bias) >> 2)
		}
	case upBoth:
		n := c.columns
		pixel.Weigh(c.sums[1:n+1], c.line(y/2), c.line(y/2-1+y%2*2))
		c.sums[0], c.sums[n+1] = c.sums[1], c.sums[n]
		pixel.Stretch(c.row, c.sums[:n+2])
	default:
		k := d.maxH / c.h
		for i, v := range c.line(y * c.v / d.maxV) {
			for j := range k {
				c.row[k*i+j] = v
			}
		}
	}
	return c.row
}

// space is what the components of a picture are.
type space uint8

const (
	grey space = iota
	rgb
	yCbCr
	cmyk // as Adobe stores it: 255 is no ink
	ycck
)

// space is that of the frame, by its markers and its names of components.
func (d *Decoder) space() space {
	adobe := d.adobe && !(d.n == 3 && d.jfif)
	switch {
	case d.n == 1:
		return grey
	case d.n == 4 && (!adobe || d.transform == 0):
		return cmyk
	case d.n == 4:
		return ycck
	case adobe && d.transform == 0, !adobe && !d.jfif && d.comp[0].id == 'R' && d.comp[1].id == 'G' && d.comp[2].id == 'B':
		return rgb
	}
	return yCbCr
}

// emit writes the rows of the picture that the units of row my complete.
func (d *Decoder) emit(my int) {
	end := 8 * d.maxV * (my + 1)
	if d.context && my < d.my-1 {
		end-- // it takes colours of the row below
	}
	w := d.Width
	for ; d.y < min(end, d.Height); d.y++ {
		out := d.dst[3*w*d.y:][:3*w]
		var in [4][]uint8
		for i := range d.n {
			in[i] = d.pixels(&d.comp[i], d.y)[:w]
		}
		switch d.colours {
		case grey:
			pixel.YCbCr(out, in[0], d.flat[:w], d.flat[:w])
		case rgb, cmyk:
			for i, v := range in[0] {
				o := out[3*i : 3*i+3 : 3*i+3]
				o[0], o[1], o[2] = v, in[1][i], in[2][i]
			}
		default:
			pixel.YCbCr(out, in[0], in[1], in[2])
		}
		if d.n == 4 {
			d.ink(out, in[3])
		}
	}
}

// ink puts black over colours, as Pillow converts CMYK to RGB.
func (d *Decoder) ink(out, black []uint8) {
	for i, k := range black {
		for j := 3 * i; j < 3*i+3; j++ {
			v := uint32(out[j]) // of YCCK: the conversion to CMYK, inverted
			if d.colours == cmyk {
				v = 255 - v
			}
			t := v*uint32(k) + 128
			out[j] = k - uint8((t+t>>8)>>8)
		}
	}
}
