package jpeg

import "encoding/binary"

// reader reads the entropy-coded data between two markers (section F.1.2.3: a zero byte follows each
// byte 0xff of it). The next bit is the highest of acc. Behind the end of the data there are zeros.
type reader struct {
	b   []byte
	at  int    // of the next byte in b, or of the marker where the data ended
	acc uint64 // n bits from the top; those below come again with the next byte
	n   int
	pad int  // bits in acc, and before, that stand behind the end of the data
	end bool // the data has ended, at a marker or (eof) with the file
	eof bool
}

// begin starts at a byte of b.
func (r *reader) begin(at int) { *r = reader{b: r.b, at: at} }

// short reports whether more bits were taken than there are.
func (r *reader) short() bool { return r.n < r.pad }

// least is the number of bits that acc needs before a code and its value are taken: 17 bits of a code that no table
// has, or 16 and 15 of a value.
const least = 32

// fill brings acc to at least 56 bits.
func (r *reader) fill(acc uint64, n int) (uint64, int) {
	if r.at+8 <= len(r.b) {
		// Eight bytes without 0xff: v is complemented, and a zero byte is looked for.
		v := binary.BigEndian.Uint64(r.b[r.at:])
		if (^v-0x0101010101010101)&v&0x8080808080808080 == 0 {
			r.at += (63 - n) >> 3
			return acc | v>>(uint(n)&63), n | 56
		}
	}
	return r.fillSlowly(acc, n)
}

func (r *reader) fillSlowly(acc uint64, n int) (uint64, int) {
	acc &= ^(^uint64(0) >> (uint(n) & 63)) // what a faster fill has left below n comes again
	for n <= 56 {
		v := uint64(0)
		if !r.end {
			v = r.next()
		}
		if r.end {
			r.pad += 8
		}
		acc |= v << (56 - uint(n))
		n += 8
	}
	return acc, n
}

// next is the next byte, or finds the end. Bytes 0xff may stand before the zero or the code of a marker.
func (r *reader) next() uint64 {
	if r.at >= len(r.b) {
		r.end, r.eof = true, true
		return 0
	}
	v := r.b[r.at]
	if v != 0xff {
		r.at++
		return uint64(v)
	}
	i := r.at + 1
	for i < len(r.b) && r.b[i] == 0xff {
		i++
	}
	switch {
	case i >= len(r.b):
		r.end, r.eof = true, true
	case r.b[i] == 0:
		r.at = i + 1
		return 0xff
	default:
		r.end = true
	}
	return 0
}

// take returns the next k bits, 0 < k <= 16.
func (r *reader) take(k int) int32 {
	if r.n < least {
		r.acc, r.n = r.fill(r.acc, r.n)
	}
	v := int32(r.acc >> (64 - uint(k)))
	r.acc <<= uint(k)
	r.n -= k
	return v
}
