package jpeg

import "github.com/geoalign/geoalign/data/internal/pixel"

// scan reads a scan: its header b (section B.2.3), and the data from b[at] of the file on. d.in.at is then the
// place of the marker behind it. It returns false for scans that image/jpeg must judge.
func (d *Decoder) scan(b []byte, at int) bool {
	if d.n == 0 || len(b) < 6 || len(b) != 4+2*int(b[0]) || int(b[0]) > d.n {
		return false
	}
	var list [3]*component
	n := int(b[0])
	for i := range n {
		id, tables := b[1+2*i], b[2+2*i]
		for j := range d.n {
			if d.comp[j].id == id {
				list[i] = &d.comp[j]
			}
		}
		dc, ac := tables>>4, tables&15
		if list[i] == nil || i > 0 && list[i] == list[0] || i > 1 && list[i] == list[1] || dc > 3 || ac > 3 ||
			d.baseline && (dc > 1 || ac > 1) {
			return false
		}
		list[i].dcTable, list[i].acTable = &d.huff[0][dc], &d.huff[1][ac]
		list[i].dc = 0
	}
	from, to, high, low := int(b[1+2*n]), int(b[2+2*n]), b[3+2*n]>>4, b[3+2*n]&15
	s := scan{to: 63}
	if d.progressive {
		if from == 0 && to != 0 || from > to || to > 63 || from != 0 && n != 1 || high != 0 && high != low+1 ||
			low > 13 {
			return false
		}
		s = scan{from: from, to: to, low: uint(low), refine: high != 0}
	}
	for _, c := range list[:n] {
		switch {
		case !d.progressive && (c.seen || !d.quant[c.table].ok):
			return false
		case s.from == 0 && !s.refine && !c.dcTable.ok, s.to > 0 && !c.acTable.ok:
			return false
		case d.progressive && s.from > 0 && !c.seen: // the mean comes first
			return false
		}
		c.seen = true
	}
	d.in.begin(at)
	if d.seekEnd && (d.progressive || n != d.n) {
		return false
	}
	if n == 1 {
		return d.alone(list[0], &s)
	}
	return d.together(list[:n], &s)
}

// ended passes what is behind the last block of a scan.
func (d *Decoder) ended() bool {
	if d.seekEnd {
		d.end = d.in.passed()
		return false
	}
	return d.in.finish()
}

// together decodes a scan of several components, a unit after the other (section A.2.3).
func (d *Decoder) together(list []*component, s *scan) bool {
	unit, marker := 0, uint8(0xd0)
	for my := range d.my {
		for mx := range d.mx {
			for _, c := range list {
				for j := range c.v {
					for i := range c.h {
						if !d.block(c, s, c.h*mx+i, c.v*my+j) {
							return false
						}
					}
				}
			}
			if unit++; unit < d.mx*d.my && !d.next(unit, list, s, &marker) {
				return false
			}
		}
	}
	return d.ended()
}

// alone decodes a scan of one component, whose blocks beyond the image are not there (section A.2.2). Units
// are counted as image/jpeg does, by those of the frame, or as the standard does.
func (d *Decoder) alone(c *component, s *scan) bool {
	unit, marker := 0, uint8(0xd0)
	list := []*component{c}
	if d.blocks {
		// of the scan, in blocks; the first component has the most
		wide := (d.w*c.h + 8*d.comp[0].h - 1) / (8 * d.comp[0].h)
		high := (d.h*c.v + 8*d.comp[0].v - 1) / (8 * d.comp[0].v)
		for unit < wide*high {
			if !d.block(c, s, unit%wide, unit/wide) {
				return false
			}
			if unit++; unit < wide*high && !d.next(unit, list, s, &marker) {
				return false
			}
		}
		return d.ended() && s.run == 0
	}
	n := 0
	for unit < d.mx*d.my {
		for range c.h * c.v {
			bx, by := n%c.wide, n/c.wide
			n++
			if bx*8 >= d.w || by*8 >= d.h {
				continue
			}
			if !d.block(c, s, bx, by) {
				return false
			}
		}
		if unit++; unit < d.mx*d.my && !d.next(unit, list, s, &marker) {
			return false
		}
	}
	return d.ended() && s.run == 0
}

// next passes a restart marker if one is due behind a unit (section F.2.1.3.1).
func (d *Decoder) next(unit int, list []*component, s *scan, marker *uint8) bool {
	if d.restart == 0 || unit%d.restart != 0 {
		return true
	}
	b := d.in.b
	if !d.in.finish() || d.in.at+2 > len(b) || b[d.in.at+1] != *marker || s.run != 0 {
		return false
	}
	d.in.begin(d.in.at + 2)
	*marker = 0xd0 | (*marker+1)&7
	for _, c := range list {
		c.dc = 0
	}
	return true
}

// block decodes a block, and computes it unless further scans follow.
func (d *Decoder) block(c *component, s *scan, bx, by int) bool {
	if d.progressive {
		b := &c.coefs[by*c.wide+bx]
		if s.refine {
			return d.in.more(b, s, c.acTable)
		}
		return d.in.first(b, s, c.dcTable, c.acTable, &c.dc)
	}
	var b pixel.Coefficients
	last := d.in.sequential(&b, c.dcTable, c.acTable, &c.dc)
	dst, stride, steps := c.plane[c.offset(bx, by):], 8*c.wide, &d.quant[c.table].steps
	if last == 0 {
		return false
	}
	// Beyond the limit, which no photo reaches, the fixed point of the transform overflows.
	const limit = 1 << 13
	if v := b[0] * steps[0]; last == 1 && v >= -limit && v < limit {
		fill(dst, stride, v)
	} else {
		pixel.InverseDCT(dst, stride, &b, steps)
	}
	return true
}

// fill writes a block of one colour: what the inverse DCT makes of the first coefficient alone.
func fill(dst []uint8, stride int, v int32) {
	p := uint8(min(max((v+4)>>3, -128), 127) + 128)
	for y := range 8 {
		row := (*[8]uint8)(dst[y*stride:])
		for i := range row {
			row[i] = p
		}
	}
}
