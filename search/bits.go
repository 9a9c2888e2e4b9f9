package search

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/rng"
)

// Codes says how an index codes its rows.
type Codes string

// Codes of the rows of an index.
const (
	Bytes Codes = "bytes" // a byte a number
	// Bits is a bit a number: RaBitQ (Gao and Long 2024, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical
	// Error Bound for Approximate Nearest Neighbor Search", section 3). More rows are scored anew from the pool.
	Bits Codes = "bits"
)

// A row of bits is the signs of r = P (x - c), the difference from its centre in a random rotation P, and a scale. With
// the signs s the product with a query y is estimated by
//
//	(x - c) . y  ~  |r|^2 / |r|_1 (s . P y)
//
// which is right on average over rotations, as s |r|^2 / |r|_1 is the point of that direction whose product with r is
// |r|^2 (theorem 3.2). The rotated query is coded by a byte a number, what is lost with it is small beside the signs.

// rotation is an orthogonal map of vectors of D numbers, drawn by a seed: rounds of random signs and a Hadamard
// transform of the largest power of two of channels, the first ones and the last ones in turn.
type rotation struct {
	d, power int
	signs    [rotationRounds][]float32 // (D)
}

// rotationRounds is how often all channels are mixed.
const rotationRounds = 4

// newRotation draws the rotation of an index.
func newRotation(seed uint64, d int) *rotation {
	p := &rotation{d: d, power: 1}
	for p.power*2 <= d {
		p.power *= 2
	}
	r := rng.New(seed, rng.Rotation, 0)
	for i := range p.signs {
		p.signs[i] = make([]float32, d)
		for c := range p.signs[i] {
			p.signs[i][c] = float32(2*r.IntN(2) - 1)
		}
	}
	return p
}

// apply rotates x (D) in place.
func (p *rotation) apply(x []float32) {
	scale := float32(1 / math.Sqrt(float64(p.power)))
	for i, signs := range p.signs {
		vector.Mul(x, x, signs)
		part := x[:p.power]
		if i%2 == 1 {
			part = x[p.d-p.power:]
		}
		hadamard(part)
		vector.Scale(part, scale, part)
	}
}

// hadamard is the transform of x, as long as a power of two, without its scale.
func hadamard(x []float32) {
	for h := 1; h < len(x); h *= 2 {
		for at := 0; at < len(x); at += 2 * h {
			a, b := x[at:at+h], x[at+h:at+2*h]
			for i, u := range a {
				v := b[i]
				a[i], b[i] = u+v, u-v
			}
		}
	}
}

// bitWidth returns the bytes of the bits of a row of d numbers.
func bitWidth(d int) int { return (d + vector.BitWidth - 1) / vector.BitWidth * vector.BitWidth / 8 }

// codeBits sets dst to the signs of a rotated row r (D), a bit for each number above 0, and returns the scale.
func codeBits(dst []uint8, r []float32) float32 {
	clear(dst)
	sum, square := 0.0, 0.0
	for i, v := range r {
		if v > 0 {
			dst[i/8] |= 1 << (i % 8)
		}
		sum += math.Abs(float64(v))
		square += float64(v) * float64(v)
	}
	if sum == 0 {
		return 0
	}
	return float32(square / sum)
}

// codeBitQuery sets dst (8 times the bytes of a row) to the codes of the rotated query y (D) and returns their scale
// and their sum. The product of y with signs is the scale times twice the sum of the codes at the bits less that of all.
func codeBitQuery(dst []int8, y []float32) (scale float32, sum int32) {
	scale = code(dst, y)
	for _, v := range dst {
		sum += int32(v)
	}
	return scale, sum
}
