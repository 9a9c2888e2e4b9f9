package pixel

import "fmt"

// Normalizer turns bytes into (v/255 - mean) / std, planar.
type Normalizer struct {
	table     [3][256]float32 // of every channel and byte
	constants [10][16]float32 // 1/255; mean, std and 1/std of each channel
	exact     bool            // the kernels agree with table on every byte
}

// NewNormalizer returns the normaliser of channels R, G, B.
func NewNormalizer(mean, std [3]float32) *Normalizer {
	z := &Normalizer{}
	fill := func(i int, v float32) {
		for j := range z.constants[i] {
			z.constants[i][j] = v
		}
	}
	fill(0, 1/float32(255))
	for c := range z.table {
		for v := range z.table[c] {
			x := float32(v) / 255
			z.table[c][v] = (x - mean[c]) / std[c]
		}
		fill(1+3*c, mean[c])
		fill(2+3*c, std[c])
		fill(3+3*c, 1/std[c])
	}
	z.exact = z.agrees()
	return z
}

// agrees tries the kernels on every byte: they multiply by the reciprocal and mend
// the rounding, which gives the quotient but for rare divisors.
func (z *Normalizer) agrees() bool {
	if !hasAVX2 {
		return false
	}
	var src [3 * 256]uint8
	var dst [3 * 256]float32
	for i := range src {
		src[i] = uint8(i / 3)
	}
	z.vector(dst[:], src[:], 256)
	for i, v := range dst {
		if v != z.table[i/256][i%256] {
			return false
		}
	}
	return true
}

// Apply writes the n pixels of src, len(src) = 3n, to dst as three planes of n.
func (z *Normalizer) Apply(dst []float32, src []uint8) {
	n := len(src) / 3
	if len(dst) < 3*n {
		panic(fmt.Sprintf("pixel: %d pixels do not fit %d values", n, len(dst)))
	}
	if z.exact && hasAVX2 && n >= least {
		z.vector(dst, src, n)
		return
	}
	r, g, b := dst[:n], dst[n:2*n], dst[2*n:3*n]
	for i := range r {
		p := src[3*i : 3*i+3 : 3*i+3]
		r[i], g[i], b[i] = z.table[0][p[0]], z.table[1][p[1]], z.table[2][p[2]]
	}
}

func (z *Normalizer) vector(dst []float32, src []uint8, n int) {
	if hasWide {
		normalizeAVX512(&dst[0], &src[0], n, &z.constants[0][0])
	} else {
		normalizeAVX2(&dst[0], &src[0], n, &z.constants[0][0])
	}
}
