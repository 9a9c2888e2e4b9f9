package jpeg

import (
	"fmt"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// MostScans is the most scans of a progressive file that are worth decoding, the limit of libjpeg-turbo's
// programs too: a scan of a few bytes may cost the time of the whole image. Files have about ten.
const MostScans = 500

// Decoder decodes one file after the other in memory that it keeps. It is for one goroutine at a time.
type Decoder struct {
	in    reader
	codes [2][4]codes // of means and of the rest
	huff  [2][4]huffman
	quant [4]struct {
		ok    bool
		steps pixel.Block
	}

	frame
	n            int // components, 0 before the frame header
	comp         [4]component
	maxH, maxV   int // factors of a unit (MCU)
	mx, my       int // units of the frame
	jfif, adobe  bool
	transform    uint8 // of the Adobe marker
	colours      space
	context      bool // an output row takes colours of the rows around it
	dst          []uint8
	flat         []uint8 // colours of a grey row
	y            int     // output row
	smooth       bool
	smoothedRows int // units of the frame that the last scan has whole, less 1

	scans     int // headers read
	list      []*component
	from, to  int
	high, low int

	restart, togo int // units between restart markers, 0: none, and those left
	marker        int // number of the next restart marker
	empty         bool
	scan          scan
}

// component is one colour.
type component struct {
	id, table        uint8
	h, v             int // blocks in a unit
	wide, high       int // blocks of its units
	across, down     int // blocks that have pixels
	columns, rows    int // samples that are pixels
	stride, ring     int // of plane: of 16 v rows
	up               upsampling
	dcTable, acTable uint8 // of the scan
	means, rest      *huffman
	mean             int32
	steps            pixel.Block
	latched          bool // steps are those of its first scan
	// Bits of coefficients in zigzag order that are still to come, -1 for all, and before the last scan.
	lacks, lacked [64]int8
	memory
}

// memory is what a component keeps between files.
type memory struct {
	plane []uint8
	coefs []pixel.Block
	seen  []uint64 // coefficients of a block that are not zero, in zigzag order
	row   []uint8
	sums  []uint16
}

// kept is the number of bytes of coefficients above which Forget drops them.
const kept = 16 << 20

// Forget drops the memory of a large file.
func (d *Decoder) Forget() {
	total := 0
	for i := range d.comp {
		total += 128 * cap(d.comp[i].coefs)
	}
	if total > kept {
		d.comp = [4]component{}
	}
}

// Bytes is the memory that decoding a file takes beside the file and its pixels; 0 for one that is refused.
func (d *Decoder) Bytes(b []byte) int64 {
	d.reset(b)
	defer func() { d.in.b = nil }()
	if d.header() != nil {
		return 0
	}
	n := 0
	for i := range d.n {
		c := &d.comp[i]
		n += c.stride*c.ring + 3*d.Width
		if d.several() {
			n += (128 + 8) * c.wide * c.high
		}
	}
	return int64(n)
}

// Decode decodes a file of w x h pixels to RGB in dst, of 3 w h bytes. The pixels are those of libjpeg-turbo with its
// defaults, and so is what is read of files with damage. An error is an Unsupported for a file that may be sound, else
// says what is wrong; dst is then undefined.
func (d *Decoder) Decode(dst, b []byte, w, h int) error {
	d.reset(b)
	defer func() { d.in.b, d.dst = nil, nil }()
	if err := d.header(); err != nil {
		return err
	}
	if d.Width != w || d.Height != h || len(dst) < 3*w*h {
		return fmt.Errorf("jpeg: the file has %dx%d pixels, not %dx%d", d.Width, d.Height, w, h)
	}
	d.dst = dst
	d.begin()
	if err := d.startScan(); err != nil {
		return err
	}
	if !d.several() {
		if err := d.single(); err != nil {
			return err
		}
		return d.trailer()
	}
	for {
		if err := d.collect(); err != nil {
			return err
		}
		scan, err := d.markers()
		if err != nil {
			return err
		}
		if !scan {
			break
		}
		if err := d.startScan(); err != nil {
			return err
		}
	}
	d.output()
	return nil
}

func (d *Decoder) reset(b []byte) {
	d.in = reader{b: b}
	for i := range d.quant {
		d.quant[i].ok = false
		d.codes[0][i].ok, d.codes[1][i].ok = false, false
	}
	d.n, d.scans, d.restart, d.y, d.smooth = 0, 0, 0, 0, false
	d.jfif, d.adobe = false, false
}

// several tells whether the frame has, or may have, several scans.
func (d *Decoder) several() bool { return d.progressive || len(d.list) < d.n }

// header reads everything before the first scan.
func (d *Decoder) header() error {
	if len(d.in.b) < 3 || d.in.b[0] != 0xff || d.in.b[1] != markerSOI || d.in.b[2] != 0xff {
		return damaged(0, "the file does not begin as a JPEG does")
	}
	d.in.at = 2
	scan, err := d.markers()
	switch {
	case err != nil:
		return err
	case !scan:
		return damaged(d.in.at, "the picture ends before it begins")
	}
	d.maxH, d.maxV = 1, 1
	for i := range d.n {
		d.maxH, d.maxV = max(d.maxH, d.comp[i].h), max(d.maxV, d.comp[i].v)
	}
	d.mx, d.my = over(d.Width, 8*d.maxH), over(d.Height, 8*d.maxV)
	d.context = false
	for i := range d.n {
		c := &d.comp[i]
		if d.maxH%c.h != 0 || d.maxV%c.v != 0 {
			return Unsupported(fmt.Sprintf("sampling factors %dx%d among %dx%d", c.h, c.v, d.maxH, d.maxV))
		}
		c.wide, c.high = c.h*d.mx, c.v*d.my
		c.across, c.down = over(d.Width*c.h, 8*d.maxH), over(d.Height*c.v, 8*d.maxV)
		c.columns, c.rows = over(d.Width*c.h, d.maxH), over(d.Height*c.v, d.maxV)
		c.stride, c.ring = 8*c.wide, 16*c.v
		c.up = upsamplingOf(d.maxH/c.h, d.maxV/c.v, c.columns)
		d.context = d.context || c.up == upV || c.up == upBoth
		for z := range c.lacks {
			c.lacks[z] = -1
		}
	}
	d.colours = d.space()
	return nil
}

// over is a / b, rounded up.
func over(a, b int) int { return (a + b - 1) / b }

// begin makes room for the frame.
func (d *Decoder) begin() {
	for i := range d.n {
		c := &d.comp[i]
		c.plane = grown(c.plane, c.stride*c.ring)
		if d.several() {
			c.coefs, c.seen = grown(c.coefs, c.wide*c.high), grown(c.seen, c.wide*c.high)
			clear(c.coefs)
			clear(c.seen)
		}
		if c.up != upNone {
			c.row, c.sums = grown(c.row, d.maxH/c.h*c.columns), grown(c.sums, c.columns+2)
		}
	}
	if d.colours == grey {
		d.flat = grown(d.flat, d.Width)
		for i := range d.flat {
			d.flat[i] = 128
		}
	}
	if d.progressive {
		return
	}
	for i := range 2 { // frames of Motion JPEG leave out the tables of the standard
		for j := range 2 {
			if c := &d.codes[i][j]; !c.ok {
				*c = standard[i][j]
			}
		}
	}
}

// grown returns memory for n values, that of s if it is enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// startScan makes ready for the scan whose header was read.
func (d *Decoder) startScan() error {
	at, blocks := d.in.at, 0
	for _, c := range d.list {
		blocks += c.h * c.v
	}
	if len(d.list) > 1 && blocks > 10 {
		return damaged(at, "units of %d blocks, want at most 10", blocks)
	}
	for _, c := range d.list {
		if c.latched {
			continue
		}
		if c.table > 3 || !d.quant[c.table].ok {
			return damaged(at, "no steps in place %d", c.table)
		}
		c.steps, c.latched = d.quant[c.table].steps, true
	}
	if d.progressive {
		if err := d.progress(at); err != nil {
			return err
		}
	}
	for _, c := range d.list {
		c.mean = 0
		if !d.progressive || d.from == 0 && d.high == 0 {
			if c.means = d.table(0, c.dcTable); c.means == nil {
				return damaged(at, "no codes of means in place %d, or bad ones", c.dcTable)
			}
		}
		if !d.progressive || d.from > 0 {
			if c.rest = d.table(1, c.acTable); c.rest == nil {
				return damaged(at, "no codes in place %d, or bad ones", c.acTable)
			}
		}
	}
	d.scan = scan{from: d.from, to: d.to, low: uint(d.low), refine: d.high != 0}
	d.in.begin(at)
	d.empty, d.togo, d.marker = false, d.restart, 0
	return nil
}

func (d *Decoder) table(kind int, at uint8) *huffman {
	if at > 3 || !d.codes[kind][at].ok || !d.huff[kind][at].make(&d.codes[kind][at], kind == 0) {
		return nil
	}
	return &d.huff[kind][at]
}

// progress tests what a scan of a progressive frame brings, and notes it.
func (d *Decoder) progress(at int) error {
	if d.from == 0 && d.to != 0 || d.from > d.to || d.to > 63 || d.from > 0 && len(d.list) != 1 ||
		d.high != 0 && d.low != d.high-1 || d.low > 13 {
		return damaged(at, "a scan of the coefficients %d to %d, bits %d to %d", d.from, d.to, d.high, d.low)
	}
	for _, c := range d.list {
		for z := min(d.from, 1); z <= max(d.to, 9); z++ {
			c.lacked[z] = 0
			if d.scans > 1 {
				c.lacked[z] = c.lacks[z]
			}
		}
		for z := d.from; z <= d.to; z++ {
			c.lacks[z] = int8(d.low)
		}
	}
	return nil
}

// trailer looks at what follows the only scan, as far as libjpeg-turbo sees it: Pillow gives it pieces of 64 KiB. The
// mark of the end may be missing.
func (d *Decoder) trailer() error {
	const piece = 1 << 16
	d.in.b = d.in.b[:min(len(d.in.b), over(max(d.in.at, 1), piece)*piece)]
	at := d.in.at
	scan, err := d.markers()
	switch {
	case err == ErrCut:
		return nil
	case scan:
		return damaged(at, "a second scan of the same components")
	}
	return err
}
