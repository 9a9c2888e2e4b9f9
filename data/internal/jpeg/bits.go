package jpeg

import "encoding/binary"

// bits reads the entropy-coded data between two markers (section F.1.2.3: a zero byte follows each
// byte 0xff of it). The next bit is the highest of acc.
type bits struct {
	b   []byte
	at  int    // of the next byte in b
	acc uint64 // n bits, from the top
	n   int    // may fall below zero: more was read than there is
	pad int    // bits in acc that stand behind the end of the data
	end bool   // a marker or the end of the file is at b[at]
}

// begin starts at a byte of b.
func (r *bits) begin(at int) { *r = bits{b: r.b, at: at} }

// fill brings at least 56 bits into acc, zeros behind the end.
func (r *bits) fill() {
	if r.at+8 <= len(r.b) {
		// Eight bytes without 0xff: v is complemented, and a zero byte is looked for.
		v := binary.BigEndian.Uint64(r.b[r.at:])
		if (^v-0x0101010101010101)&v&0x8080808080808080 == 0 {
			r.acc |= v >> r.n
			k := (64 - r.n) >> 3
			r.at += k
			r.n += 8 * k
			// Bits below n must be those that the next byte brings, so they may stay.
			return
		}
	}
	r.fillSlowly()
}

func (r *bits) fillSlowly() {
	// What a faster fill has left below n comes again.
	r.acc &= ^(^uint64(0) >> r.n)
	for r.n <= 56 {
		var v byte
		if !r.end {
			switch {
			case r.at >= len(r.b):
				r.end = true
			case r.b[r.at] != 0xff:
				v = r.b[r.at]
				r.at++
			case r.at+1 < len(r.b) && r.b[r.at+1] == 0:
				v = 0xff
				r.at += 2
			default:
				r.end = true
			}
		}
		if r.end {
			r.pad += 8
		}
		r.acc |= uint64(v) << (56 - r.n)
		r.n += 8
	}
}

// take returns the next k bits, 0 < k <= 32.
func (r *bits) take(k int) uint32 {
	if r.n < k {
		r.fill()
	}
	v := uint32(r.acc >> (64 - k))
	r.acc <<= k
	r.n -= k
	return v
}

// finish reports whether all of the data was read and no more: less than a byte is left before the
// marker at b[at].
func (r *bits) finish() bool {
	r.fill()
	for !r.end && r.n <= 56 {
		r.fill()
	}
	left := r.n - r.pad
	return r.end && left >= 0 && left < 8
}

// passed returns the place behind the last byte that a bit was taken of, 0 if more bits were taken than there are.
func (r *bits) passed() int {
	left := r.n - r.pad
	if left < 0 {
		return 0
	}
	at := r.at
	for range left / 8 {
		at--
		if r.b[at] == 0 && r.b[at-1] == 0xff {
			at--
		}
	}
	return at
}
