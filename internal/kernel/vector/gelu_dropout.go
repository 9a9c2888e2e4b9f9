package vector

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// GELU with dropout behind it, in one pass over memory. Bits are those of Dropout, and float32 results those of GELU,
// or GELUGrad, and Dropout one after the other.

// Values are float32 or bfloat16: one of the fields is set.
type Values struct {
	F32  []float32
	BF16 []uint16
}

// from returns the values from i on.
func (v Values) from(i int) Values {
	if v.BF16 != nil {
		return Values{BF16: v.BF16[i:]}
	}
	return Values{F32: v.F32[i:]}
}

// floats returns the first len(room) values as float32: where they are, or in room.
func (v Values) floats(room []float32) []float32 {
	if v.BF16 == nil {
		return v.F32[:len(room)]
	}
	FromBF16(room, v.BF16[:len(room)])
	return room
}

// GELUDropout sets n values of dst to scale * GELU(x) where the bit of bits is one and 0 elsewhere. dst may be x.
func GELUDropout(dst, x Values, n int, bits []int32, scale float32) {
	if dst.BF16 != nil && x.BF16 != nil && cpu.HasAVX512 && n > 0 {
		geluDropoutHalvesVec(&dst.BF16[:n][0], &x.BF16[:n][0], bitsAt(bits, n), n, scale)
		return
	}
	var room, piece [halfPiece]float32
	for at := 0; at < n; at += halfPiece {
		m, words := min(n-at, halfPiece), bits[at/32:]
		to := piece[:m]
		if dst.BF16 == nil {
			to = dst.F32[at : at+m]
		}
		GELU(to, x.from(at).floats(room[:m]))
		Dropout(to, to, words, scale)
		if dst.BF16 != nil {
			ToBF16(dst.BF16[at:at+m], to)
		}
	}
}

// GELUDropoutGrad sets n values of dst to the gradient of x for that of the result of GELUDropout, dy. dst may be x or
// dy.
func GELUDropoutGrad(dst, x, dy Values, n int, bits []int32, scale float32) {
	if dst.BF16 != nil && x.BF16 != nil && dy.BF16 != nil && cpu.HasAVX512 && n > 0 {
		geluDropoutGradHalvesVec(&dst.BF16[:n][0], &x.BF16[:n][0], &dy.BF16[:n][0], bitsAt(bits, n), n, scale)
		return
	}
	var roomX, roomDy, piece [halfPiece]float32
	for at := 0; at < n; at += halfPiece {
		m := min(n-at, halfPiece)
		to, kept := piece[:m], piece[:m]
		if dst.BF16 == nil {
			to = dst.F32[at : at+m]
		}
		Dropout(kept, dy.from(at).floats(roomDy[:m]), bits[at/32:], scale)
		GELUGrad(to, x.from(at).floats(roomX[:m]), kept)
		if dst.BF16 != nil {
			ToBF16(dst.BF16[at:at+m], to)
		}
	}
}
