package jpeg

import (
	"math/bits"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// natural maps the zigzag order of coefficients to rows of 8. What damaged data puts behind the last one comes to it.
var natural = func() (at [128]uint8) {
	x, y := 0, 0
	for i := range at {
		at[i] = uint8(8*y + x)
		switch {
		case x == 7 && y == 7:
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

// difference decodes the difference of a mean to that of the block before, of at most 32 bits.
func (h *huffman) difference(acc uint64) (v int32, length int) {
	if e := h.values[acc>>(64-lookBits)]; e != 0 {
		return e >> 16, int(e & 0xff)
	}
	size, length := h.symbol(acc)
	if size == 0 {
		return 0, length
	}
	return extend(int32(acc<<uint(length)>>(64-uint(size))), size), length + size
}

// sequential decodes the block of a sequential scan (section F.2.2), and adds the difference of its mean to mean. It
// reports whether the block may have more than a mean.
func (r *reader) sequential(c *pixel.Block, means, rest *huffman, mean *int32) (more bool) {
	acc, n := r.acc, r.n
	if n < least {
		acc, n = r.fill(acc, n)
	}
	v, l := means.difference(acc)
	acc <<= uint(l)
	n -= l
	*mean += v
	c[0] = int16(*mean)
	z := 1
	for z < 64 {
		if n < least {
			acc, n = r.fill(acc, n)
		}
		if e := rest.values[acc>>(64-lookBits)]; e != 0 {
			acc <<= uint(e & 63)
			n -= int(e & 63)
			if z += int(e >> 8 & 0xff); z >= endOfBlock {
				break
			}
			c[natural[z&127]&63] = int16(e >> 16)
			more = true
			z++
			continue
		}
		s, l := rest.symbol(acc)
		acc <<= uint(l)
		n -= l
		size := s & 15
		if size == 0 {
			if s != 0xf0 {
				break
			}
			z += 16
			continue
		}
		z += s >> 4
		c[natural[z&127]&63] = int16(extend(int32(acc>>(64-uint(size))), size))
		more = true
		acc <<= uint(size)
		n -= size
		z++
	}
	r.acc, r.n = acc, n
	return more
}

// scan is what a scan of a progressive frame (annex G) brings: the coefficients from to to in zigzag order, at the bit
// low, the first time or (refine) one bit more.
type scan struct {
	from, to int
	low      uint
	refine   bool
	run      int // blocks without further coefficients that follow
}

// first decodes the coefficients of a block in their first scan (section G.1.2.2). Bit z of seen tells which are not
// zero, in zigzag order.
func (r *reader) first(c *pixel.Block, seen *uint64, s *scan, rest *huffman) {
	if s.run > 0 {
		s.run--
		return
	}
	acc, n := r.acc, r.n
	set := *seen
	for z := s.from; z <= s.to; z++ {
		if n < least {
			acc, n = r.fill(acc, n)
		}
		var v int32
		if e := rest.values[acc>>(64-lookBits)]; e != 0 {
			acc <<= uint(e & 63)
			n -= int(e & 63)
			if z += int(e >> 8 & 0xff); z >= endOfBlock {
				break
			}
			v = e >> 16
		} else {
			symbol, l := rest.symbol(acc)
			acc <<= uint(l)
			n -= l
			size, run := symbol&15, symbol>>4
			if size == 0 {
				if run == 15 {
					z += 15
					continue
				}
				s.run = 1<<run - 1
				if run > 0 {
					s.run += int(acc >> (64 - uint(run)))
					acc <<= uint(run)
					n -= run
				}
				break
			}
			z += run
			v = extend(int32(acc>>(64-uint(size))), size)
			acc <<= uint(size)
			n -= size
		}
		at := min(z, 63)
		c[natural[at]&63] = int16(v << s.low)
		set |= 1 << at
		if int16(v<<s.low) == 0 { // the bits of damaged data fall out
			set &^= 1 << at
		}
	}
	*seen = set
	r.acc, r.n = acc, n
}

// more decodes a bit more of the coefficients of a block, and those that are no longer zero with it (section G.1.2.3).
func (r *reader) more(c *pixel.Block, seen *uint64, s *scan, rest *huffman) {
	bit := int16(1) << s.low
	z := s.from
	set := *seen
	if s.run == 0 {
		for ; z <= s.to; z++ {
			if r.n < least {
				r.acc, r.n = r.fill(r.acc, r.n)
			}
			symbol, l := rest.symbol(r.acc)
			r.acc <<= uint(l)
			r.n -= l
			run, value := symbol>>4, int16(0)
			switch {
			case symbol&15 != 0:
				value = -bit
				if r.acc>>63 != 0 {
					value = bit
				}
				r.acc <<= 1
				r.n--
			case run < 15:
				s.run = 1 << run
				if run > 0 {
					s.run += int(r.acc >> (64 - uint(run)))
					r.acc <<= uint(run)
					r.n -= run
				}
			}
			if s.run > 0 {
				break
			}
			// Behind run zeros comes the new one; on the way each that is not zero gets a bit.
			zeros := ^set &^ (1<<z - 1) & (^uint64(0) >> (63 - s.to))
			for ; run > 0; run-- {
				zeros &= zeros - 1
			}
			next := s.to + 1
			if zeros != 0 {
				next = bits.TrailingZeros64(zeros)
			}
			r.correct(c, set&^(1<<z-1)&(1<<next-1), bit)
			z = next
			if value != 0 {
				at := min(z, 63)
				c[natural[at]&63] = value
				set |= 1 << at
			}
		}
	}
	if s.run > 0 {
		if z <= s.to {
			r.correct(c, set&^(1<<z-1)&(^uint64(0)>>(63-s.to)), bit)
		}
		s.run--
	}
	*seen = set
}

// correct reads a bit for each of some coefficients, in zigzag order.
func (r *reader) correct(c *pixel.Block, which uint64, bit int16) {
	acc, n := r.acc, r.n
	for ; which != 0; which &= which - 1 {
		if n == 0 {
			acc, n = r.fill(acc, n)
		}
		one := acc>>63 != 0
		acc <<= 1
		n--
		v := &c[natural[bits.TrailingZeros64(which)]&63]
		switch {
		case !one || *v&bit != 0:
		case *v >= 0:
			*v += bit
		default:
			*v -= bit
		}
	}
	r.acc, r.n = acc, n
}
