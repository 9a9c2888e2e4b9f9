package jpeg

import (
	"encoding/binary"
	"image"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// Decoder decodes one file after the other in memory that it keeps. It is for one goroutine at a time.
type Decoder struct {
	in    bits
	huff  [2][4]huffman // DC and AC
	quant [4]struct {
		ok    bool
		steps pixel.Coefficients
	}
	comp        [3]component
	n           int // components, 0 before the frame header
	w, h        int // pixels
	mx, my      int // units of the frame (MCUs)
	progressive bool
	baseline    bool // allows two tables of a kind alone
	restart     int  // units between restart markers, 0: none
	jfif, adobe bool
	transform   uint8 // of the Adobe marker

	blocks  bool // counts the units of a scan of one component as the standard does
	seekEnd bool // looks for the end of the picture, whatever stands behind it
	end     int  // of the picture: behind its last block

	planes []uint8
	coefs  []pixel.Coefficients // of a progressive frame
	image  image.YCbCr
	grey   image.Gray
}

// component is one colour.
type component struct {
	id    uint8
	h, v  int // blocks in a unit
	table uint8
	seen  bool
	wide  int // blocks in a row
	plane []uint8
	coefs []pixel.Coefficients
	dc    int32
	// Tables of the scan.
	dcTable, acTable *huffman
}

// kept is the number of bytes of planes or of coefficients above which Forget drops them.
const kept = 16 << 20

// Forget drops the memory of a large file, and with it the image that Decode returned.
func (d *Decoder) Forget() {
	if len(d.planes) > kept || len(d.coefs)*256 > kept {
		d.planes, d.coefs, d.comp, d.image, d.grey = nil, nil, [3]component{}, image.YCbCr{}, image.Gray{}
	}
}

// Decode decodes a file of w x h pixels to brightness and colour differences (*image.YCbCr) or grey (*image.Gray),
// which are good until the next call. It returns nil for files that are left to image/jpeg.
func (d *Decoder) Decode(b []byte, w, h int) image.Image {
	if len(b) < 4 || b[0] != 0xff || b[1] != 0xd8 {
		return nil
	}
	for i := range d.quant {
		d.quant[i].ok = false
		d.huff[0][i].ok, d.huff[1][i].ok = false, false
	}
	d.comp, d.n, d.restart = [3]component{}, 0, 0
	d.jfif, d.adobe, d.progressive, d.baseline = false, false, false, false
	d.in = bits{b: b}
	defer func() { d.in.b = nil }()
	for at := 2; ; {
		if at+2 > len(b) || b[at] != 0xff {
			return nil
		}
		marker := b[at+1]
		if marker == 0xff { // filling
			at++
			continue
		}
		if marker == 0xd9 {
			return d.finish()
		}
		if at+4 > len(b) {
			return nil
		}
		n := int(binary.BigEndian.Uint16(b[at+2:]))
		if n < 2 || at+2+n > len(b) {
			return nil
		}
		body := b[at+4 : at+2+n]
		at += 2 + n
		ok := true
		switch {
		case marker == 0xc0 || marker == 0xc1 || marker == 0xc2:
			d.baseline, d.progressive = marker == 0xc0, marker == 0xc2
			ok = d.frame(body, w, h)
		case marker == 0xc4:
			ok = d.tables(body)
		case marker == 0xdb:
			ok = d.quantisation(body)
		case marker == 0xdd:
			if ok = len(body) == 2; ok {
				d.restart = int(binary.BigEndian.Uint16(body))
			}
		case marker == 0xda:
			if ok = d.scan(body, at); ok {
				at = d.in.at
			}
		case marker == 0xe0:
			if len(body) >= 5 {
				d.jfif = string(body[:5]) == "JFIF\x00"
			}
		case marker == 0xee:
			if len(body) >= 12 && string(body[:5]) == "Adobe" {
				d.adobe, d.transform = true, body[11]
			}
		case marker < 0xe0 || marker > 0xfe || marker > 0xef && marker < 0xfe:
			ok = false
		}
		if !ok {
			return nil
		}
	}
}

// DecodeBlocks is Decode of files with restart markers in scans of one component, whose units are blocks (section
// A.2.2), as libjpeg counts them: image/jpeg counts those of the frame, and refuses such files of colours at half
// resolution.
func (d *Decoder) DecodeBlocks(b []byte, w, h int) image.Image {
	d.blocks = true
	defer func() { d.blocks = false }()
	return d.Decode(b, w, h)
}

// End returns where the last block of a picture of w x h pixels ends that has all its components in one sequential
// scan, 0 if it is not whole or is left to image/jpeg. What stands behind it does not matter: the mark of the end may
// be missing.
func (d *Decoder) End(b []byte, w, h int) int {
	d.seekEnd, d.end = true, 0
	defer func() { d.seekEnd = false }()
	d.Decode(b, w, h)
	return d.end
}

// frame reads a frame header (section B.2.2).
func (d *Decoder) frame(b []byte, w, h int) bool {
	if d.n != 0 || len(b) < 6 || b[0] != 8 || len(b) != 6+3*int(b[5]) || b[5] != 1 && b[5] != 3 {
		return false
	}
	d.h, d.w, d.n = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:])), int(b[5])
	if d.w != w || d.h != h || w == 0 || h == 0 {
		return false
	}
	for i := range d.n {
		c := &d.comp[i]
		c.id, c.h, c.v, c.table = b[6+3*i], int(b[7+3*i]>>4), int(b[7+3*i]&15), b[8+3*i]
		if c.table > 3 || i > 0 && c.id == d.comp[0].id || i > 1 && c.id == d.comp[1].id {
			return false
		}
	}
	y, cb, cr := &d.comp[0], &d.comp[1], &d.comp[2]
	if d.n == 1 {
		// One component has blocks one after the other, whatever its factors say (section A.2.2).
		if y.h < 1 || y.h > 4 || y.v < 1 || y.v > 4 || y.h == 3 || y.v == 3 {
			return false
		}
		y.h, y.v = 1, 1
	} else if cb.h != 1 || cb.v != 1 || cr.h != 1 || cr.v != 1 || y.h < 1 || y.h > 2 || y.v < 1 || y.v > 2 {
		return false // 4:1:1 and what is rarer
	}
	d.mx, d.my = (w+8*y.h-1)/(8*y.h), (h+8*y.v-1)/(8*y.v)
	total := 0
	for i := range d.n {
		c := &d.comp[i]
		c.wide = d.mx * c.h
		total += d.mx * c.h * d.my * c.v
	}
	d.planes = grown(d.planes, 64*total)
	if d.progressive {
		d.coefs = grown(d.coefs, total)
		clear(d.coefs)
	}
	for i, at := 0, 0; i < d.n; i++ {
		c := &d.comp[i]
		n := d.mx * c.h * d.my * c.v
		c.plane = d.planes[64*at : 64*(at+n)]
		if d.progressive {
			c.coefs = d.coefs[at : at+n]
		}
		at += n
	}
	return true
}

// grown returns memory for n values, that of s if it is enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// tables reads Huffman tables (section B.2.4.2).
func (d *Decoder) tables(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 17 {
			return false
		}
		kind, to := b[0]>>4, b[0]&15
		counts := (*[16]uint8)(b[1:17])
		n := 0
		for _, c := range counts {
			n += int(c)
		}
		if kind > 1 || to > 3 || d.baseline && to > 1 || n == 0 || n > 256 || len(b) < 17+n {
			return false
		}
		if !d.huff[kind][to].set(counts, b[17:17+n]) {
			return false
		}
		b = b[17+n:]
	}
	return true
}

// quantisation reads tables of steps (section B.2.4.1).
func (d *Decoder) quantisation(b []byte) bool {
	for len(b) > 0 {
		wide, to := b[0]>>4, b[0]&15
		size := 64 * (1 + int(wide))
		if wide > 1 || to > 3 || len(b) < 1+size {
			return false
		}
		q := &d.quant[to]
		q.ok = true
		for z, at := range transposed {
			if wide == 0 {
				q.steps[at] = int32(b[1+z])
			} else {
				q.steps[at] = int32(binary.BigEndian.Uint16(b[1+2*z:]))
			}
		}
		b = b[1+size:]
	}
	return true
}

// finish computes the blocks of a progressive frame and returns the image.
func (d *Decoder) finish() image.Image {
	if d.n == 0 {
		return nil
	}
	for i := range d.n {
		if !d.comp[i].seen {
			return nil
		}
	}
	if d.n == 3 && !d.jfif && (d.adobe && d.transform == 0 || d.comp[0].id == 'R' && d.comp[1].id == 'G' &&
		d.comp[2].id == 'B') {
		return nil // RGB
	}
	if d.progressive {
		for i := range d.n {
			c := &d.comp[i]
			q := &d.quant[c.table]
			if !q.ok {
				return nil
			}
			for b := range c.coefs {
				pixel.InverseDCT(c.plane[c.offset(b%c.wide, b/c.wide):], 8*c.wide, &c.coefs[b], &q.steps)
			}
		}
	}
	rect := image.Rect(0, 0, d.w, d.h)
	y := &d.comp[0]
	if d.n == 1 {
		d.grey = image.Gray{Pix: y.plane, Stride: 8 * y.wide, Rect: rect}
		return &d.grey
	}
	ratio := [3][3]image.YCbCrSubsampleRatio{
		1: {1: image.YCbCrSubsampleRatio444, 2: image.YCbCrSubsampleRatio440},
		2: {1: image.YCbCrSubsampleRatio422, 2: image.YCbCrSubsampleRatio420},
	}[y.h][y.v]
	d.image = image.YCbCr{Y: y.plane, Cb: d.comp[1].plane, Cr: d.comp[2].plane,
		YStride: 8 * y.wide, CStride: 8 * d.comp[1].wide, SubsampleRatio: ratio, Rect: rect}
	return &d.image
}

// offset is where the plane of c has the block at bx, by.
func (c *component) offset(bx, by int) int { return 8 * (8*c.wide*by + bx) }
