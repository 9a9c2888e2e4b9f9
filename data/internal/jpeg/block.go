package jpeg

import "github.com/geoalign/geoalign/data/internal/pixel"

// transposed maps the zigzag order of coefficients to where package pixel wants them: column by column.
var transposed = func() (at [64]uint8) {
	x, y := 0, 0
	for i := range 64 {
		at[i] = uint8(8*x + y)
		switch {
		case (x+y)%2 == 0 && x == 7:
			y++
		case (x+y)%2 == 0 && y == 0:
			x++
		case (x+y)%2 == 0:
			x, y = x+1, y-1
		case y == 7:
			x++
		case x == 0:
			y++
		default:
			x, y = x-1, y+1
		}
	}
	return at
}()

// sequential decodes the block of a sequential scan (section F.2.2) into zeroed coefficients, and adds the
// difference of its mean to dc. It returns the place behind the last coefficient in zigzag order,
// 0 for damaged data.
func (r *bits) sequential(c *pixel.Coefficients, dcTable, acTable *huffman, dc *int32) int {
	size := r.symbol(dcTable)
	if size < 0 || size > 16 {
		return 0
	}
	if size > 0 {
		*dc += extend(int32(r.take(size)), size)
	}
	c[0] = *dc
	last := 1
	for z := 1; z < 64; {
		if r.n < 32 { // the longest code with its value has 31 bits
			r.fill()
		}
		if v := acTable.values[r.acc>>(64-lookBits)]; v != 0 {
			l := int(v & 0xff)
			r.acc <<= l
			r.n -= l
			z += int(v >> 8 & 0xff)
			if z > 63 {
				return 0 // image/jpeg ends the block here, which no writer means
			}
			c[transposed[z]&63] = v >> 16
			z++
			last = z
			continue
		}
		s := r.symbol(acTable)
		if s < 0 {
			return 0
		}
		size = s & 15
		if size == 0 {
			if s != 0xf0 {
				if s != 0 { // runs of ends of blocks are for progressive scans
					return 0
				}
				break
			}
			z += 16
			continue
		}
		z += s >> 4
		if z > 63 {
			return 0
		}
		c[transposed[z]&63] = extend(int32(r.take(size)), size)
		z++
		last = z
	}
	return last
}

// scan is what a progressive scan (annex G) brings: the coefficients from to to in zigzag order, at the bit low,
// the first time or (refine) one bit more.
type scan struct {
	from, to int
	low      uint
	refine   bool
	run      int // blocks without further coefficients that follow
}

// first decodes the block of a first scan (sections G.1.2.1 and G.1.2.2). It returns false for damaged data.
func (r *bits) first(c *pixel.Coefficients, s *scan, dcTable, acTable *huffman, dc *int32) bool {
	if s.from == 0 { // alone, as process has tested
		size := r.symbol(dcTable)
		if size < 0 || size > 16 {
			return false
		}
		if size > 0 {
			*dc += extend(int32(r.take(size)), size)
		}
		c[0] = *dc << s.low
		return true
	}
	if s.run > 0 {
		s.run--
		return true
	}
	for z := s.from; z <= s.to; z++ {
		v := r.symbol(acTable)
		if v < 0 {
			return false
		}
		size, run := v&15, v>>4
		if size == 0 {
			if run == 15 {
				z += 15
				continue
			}
			s.run = r.endRun(run) - 1
			break
		}
		if z += run; z > s.to {
			return false
		}
		c[transposed[z]&63] = extend(int32(r.take(size)), size) << s.low
	}
	return true
}

// endRun reads the number of blocks, this one included, that end here (section G.1.2.2).
func (r *bits) endRun(size int) int {
	n := 1 << size
	if size > 0 {
		n |= int(r.take(size))
	}
	return n
}

// more decodes the block of a scan that refines (section G.1.2.3).
func (r *bits) more(c *pixel.Coefficients, s *scan, acTable *huffman) bool {
	bit := int32(1) << s.low
	if s.from == 0 {
		if r.take(1) != 0 {
			c[0] |= bit
		}
		return true
	}
	z := s.from
	if s.run == 0 {
		for ; z <= s.to; z++ {
			v := r.symbol(acTable)
			if v < 0 {
				return false
			}
			size, run := v&15, v>>4
			value := int32(0)
			switch {
			case size > 1:
				return false
			case size == 1:
				if value = -bit; r.take(1) != 0 {
					value = bit
				}
			case run < 15:
				s.run = r.endRun(run)
			}
			if s.run > 0 {
				break
			}
			if z = r.correct(c, z, s.to, run, bit); z > s.to {
				return false
			}
			if value != 0 {
				c[transposed[z]&63] = value
			}
		}
	}
	if s.run > 0 {
		s.run--
		r.correct(c, z, s.to, -1, bit)
	}
	return true
}

// correct reads a bit for every coefficient that is not zero, up to the one behind skip zeros, all for
// skip < 0, and returns where it stopped.
func (r *bits) correct(c *pixel.Coefficients, z, to, skip int, bit int32) int {
	for ; z <= to; z++ {
		v := &c[transposed[z]&63]
		if *v == 0 {
			if skip == 0 {
				break
			}
			skip--
			continue
		}
		if r.take(1) == 0 {
			continue
		}
		if *v >= 0 {
			*v += bit
		} else {
			*v -= bit
		}
	}
	return z
}
