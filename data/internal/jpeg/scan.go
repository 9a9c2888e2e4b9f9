package jpeg

import "github.com/geoalign/geoalign/data/internal/pixel"

// before does what comes before a unit: it passes a restart marker that is due (section F.2.1.3.1).
func (d *Decoder) before() error {
	if d.restart == 0 {
		return nil
	}
	if d.togo == 0 {
		if err := d.resume(); err != nil {
			return err
		}
	}
	d.togo--
	return nil
}

// resume goes on behind a restart marker. Where another marker is there, the wanted one is looked for as
// libjpeg does: earlier ones are passed, a later one says that the data of this interval is lost.
func (d *Decoder) resume() error {
	for _, c := range d.list {
		c.mean = 0
	}
	d.scan.run = 0
	d.togo = d.restart
	want := d.marker
	d.marker = (want + 1) & 7
	for {
		code, ok := d.in.marker()
		if !ok {
			return ErrCut
		}
		ahead := (int(code) - markerRST0 - want) & 7
		switch {
		case code < markerSOF0, code >= markerRST0 && code <= markerRST7 && ahead >= 6:
			continue
		case code < markerRST0 || code > markerRST7 || ahead == 1 || ahead == 2:
			d.in.begin(d.in.at - 2)
			d.in.end = true
			return nil
		}
		d.in.begin(d.in.at)
		d.empty = false
		return nil
	}
}

// after ends a unit that lacked bits. What follows up to a restart marker has none.
func (d *Decoder) after() error {
	if d.in.eof {
		return ErrCut
	}
	d.empty = true
	return nil
}

// single decodes the only scan of a frame.
func (d *Decoder) single() error {
	for my := range d.my {
		if len(d.list) == 1 {
			c := d.list[0]
			for by := c.v * my; by < min(c.v*(my+1), c.down); by++ {
				for bx := range c.across {
					if err := d.before(); err != nil {
						return err
					}
					if d.block(c, bx, by); d.in.short() {
						if err := d.after(); err != nil {
							return err
						}
					}
				}
			}
		} else {
			for mx := range d.mx {
				if err := d.before(); err != nil {
					return err
				}
				for _, c := range d.list {
					for by := c.v * my; by < c.v*(my+1); by++ {
						for bx := c.h * mx; bx < c.h*(mx+1); bx++ {
							d.block(c, bx, by)
						}
					}
				}
				if d.in.short() {
					if err := d.after(); err != nil {
						return err
					}
				}
			}
		}
		d.emit(my)
	}
	return nil
}

// block decodes and computes a block of a sequential scan.
func (d *Decoder) block(c *component, bx, by int) {
	var b pixel.Block
	more := false
	if !d.empty {
		more = d.in.sequential(&b, c.means, c.rest, &c.mean)
	}
	if bx < c.across && by < c.down {
		c.compute(&b, more, bx, by)
	}
}

// compute writes the samples of a block to the plane. more tells whether it may have more than a mean.
func (c *component) compute(b *pixel.Block, more bool, bx, by int) {
	dst := c.plane[8*(by%(c.ring/8))*c.stride+8*bx:]
	if more {
		pixel.InverseDCT(dst, c.stride, b, &c.steps)
		return
	}
	// All of the first pass but its rounding, and the second pass, in 16 bits.
	v := (int32(int16(int32(b[0])*int32(c.steps[0])<<2)) + 16) >> 5
	p := 0x0101010101010101 * uint64(uint8(min(max(v, -128), 127)+128))
	pixel.Fill(dst, c.stride, p)
}

// collect decodes the coefficients of one scan of several.
func (d *Decoder) collect() error {
	for my := range d.my {
		if len(d.list) == 1 {
			c := d.list[0]
			for by := c.v * my; by < min(c.v*(my+1), c.down); by++ {
				for i := by * c.wide; i < by*c.wide+c.across; i++ {
					if !d.empty {
						d.smoothedRows = my
					} else if d.restart == 0 {
						return nil
					}
					if err := d.before(); err != nil {
						return err
					}
					if d.empty {
						continue
					}
					if d.part(c, i); d.in.short() {
						if err := d.after(); err != nil {
							return err
						}
					}
				}
			}
			continue
		}
		for mx := range d.mx {
			if !d.empty {
				d.smoothedRows = my
			}
			if err := d.before(); err != nil {
				return err
			}
			if d.empty {
				continue
			}
			for _, c := range d.list {
				for by := c.v * my; by < c.v*(my+1); by++ {
					for bx := c.h * mx; bx < c.h*(mx+1); bx++ {
						d.part(c, by*c.wide+bx)
					}
				}
			}
			if d.in.short() {
				if err := d.after(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// part decodes what a scan of several brings of block i.
func (d *Decoder) part(c *component, i int) {
	b, s := &c.coefs[i], &d.scan
	switch {
	case !d.progressive:
		if d.in.sequential(b, c.means, c.rest, &c.mean) {
			c.seen[i] = 1
		}
	case s.from == 0 && s.refine:
		if d.in.take(1) != 0 {
			b[0] |= 1 << s.low
		}
	case s.from == 0:
		if d.in.n < least {
			d.in.acc, d.in.n = d.in.fill(d.in.acc, d.in.n)
		}
		v, l := c.means.difference(d.in.acc)
		d.in.acc <<= uint(l)
		d.in.n -= l
		c.mean += v
		b[0] = int16(c.mean << s.low)
	case s.refine:
		d.in.more(b, &c.seen[i], s, c.rest)
	default:
		d.in.first(b, &c.seen[i], s, c.rest)
	}
}

// output computes the samples of a frame whose scans are read.
func (d *Decoder) output() {
	smooth := d.progressive && d.smoothable()
	for my := range d.my {
		for i := range d.n {
			c := &d.comp[i]
			for by := c.v * my; by < min(c.v*(my+1), c.down); by++ {
				if smooth {
					d.smoothRow(c, my, by)
					continue
				}
				for bx := range c.across {
					at := by*c.wide + bx
					c.compute(&c.coefs[at], c.seen[at] != 0, bx, by)
				}
			}
		}
		d.emit(my)
	}
}
