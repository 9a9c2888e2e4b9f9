//go:build amd64 || arm64

package gemm

// blocking says how a product is cut.
type blocking struct {
	terms       int  // most words along k that are summed in registers: the sums of an element depend on it
	whole       int  // up to so many words along k are one block of B; otherwise a block has those that are summed
	columns     int  // most columns of a block of B
	rows        int  // most rows of a group of A
	unit        int  // rows of a group, but for the last one, are a multiple of it
	single      bool // a group of A that is not transposed is one tile, which stays in the level-1 cache
	rowsInPlace bool // an A that is not transposed is read where it lies
	small       int  // operands of up to so many words are read where they lie
}

// byCache returns the blocking for a level-2 cache of so many bytes, 0 where that is unknown: three quarters of it hold
// a block of B, the rest a group of A and what is prefetched. On a Zen 5 with 1 MiB blocks of 256 x 768 words came out
// best of 256 x 384, 256 x 512, 320 x 512, 384 x 384 and 512 x 384, by 1 to 6 % in float32 and 0 to 9 % in bfloat16:
// fewer blocks along n pack A less often, which weighs more than that fewer blocks along k write C less often.
func byCache(level2 int) blocking {
	const terms = 256
	columns := 384
	if level2 > 0 {
		columns = min(BlockN, max(128, level2*3/4/(terms*WordSize)/128*128))
	}
	return blocking{terms: terms, columns: columns, rows: groupRows, unit: 1}
}

// forFloat is byCache for products of float32 with AVX-512. With 2 MiB (Intel with AMX, two threads) groups of one
// tile, which are read where they lie in the level-1 cache, made products 3 to 5 % faster (a transposed A, which has to
// be packed into strips, was up to 13 % slower by so small ones), and blocks of all of up to 384 terms, whose sums are
// added while C is in that cache, 2 to 4 %. Other sizes were not measured.
func forFloat(level2 int) blocking {
	const large = 2 << 20
	b := byCache(level2)
	if level2 >= large {
		b.whole, b.single = mostTerms, true
	}
	return b
}

// forRows is byCache for products of float32 with AVX2 or NEON, of tiles of so many rows. On a Zen 3 (512 KiB, one thread)
// groups of whole tiles gained 2 %, an A that is not copied 1 to 3 %, and of heads of attention (257x64x257) 10 %;
// operands of up to 20 KiB, which the level-1 cache holds, that are not packed 30 % (NN 65x64x65).
func forRows(level2, height int) blocking {
	b := byCache(level2)
	b.rows, b.unit, b.rowsInPlace, b.small = groupRows/height*height, height, true, 5<<10
	return b
}
