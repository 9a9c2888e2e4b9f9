package model

import "math/rand/v2"

// keepRows writes to dst, for each of n images of so many tokens, the rows of its class
// tokens, which come first, and of kept random patches in their order: n*(classes+kept).
func keepRows(r *rand.Rand, dst []int32, n, tokens, classes, kept int) {
	for i := range n {
		own := dst[i*(classes+kept):][:classes+kept]
		first := int32(i * tokens)
		for k := range classes {
			own[k] = first + int32(k)
		}
		// Selection sampling (Knuth, volume 2, 3.4.2, algorithm S): in order, without memory.
		own = own[classes:classes]
		for p := classes; len(own) < kept; p++ {
			if r.IntN(tokens-p) < kept-len(own) {
				own = append(own, first+int32(p))
			}
		}
	}
}
