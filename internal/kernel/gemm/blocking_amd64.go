package gemm

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// blocking says how a product is cut.
type blocking struct {
	terms      int  // most words of a block of B along k: the sums of an element depend on it
	whole      int  // up to so many words along k are one block all the same
	columns    int  // most columns of a block of B
	rows       int  // most rows of a group of A
	single     bool // a group of A that is not transposed is one tile, which stays in the level-1 cache
	panelFirst bool // all tiles of a group pass over one panel of B before the next one
}

// byCache returns the blocking for a level-2 cache of so many bytes, 0 where that is unknown: three quarters of it hold a
// block of B, the rest a group of A and what is prefetched. On a Zen 5 with 1 MiB blocks of 256 x 768 words came out best
// of 256 x 384, 256 x 512, 320 x 512, 384 x 384 and 512 x 384, by 1 to 6 % in float32 and 0 to 9 % in bfloat16: fewer
// blocks along n pack A less often, which weighs more than that fewer blocks along k write C less often.
//
// With 2 MiB (Intel with AMX, two threads) a group of one tile, read from the level-1 cache where all passes over the block find it, makes products
// 1 to 4 % faster (of a transposed A, whose groups are strips of short rows, up to 13 % slower), and up to 384 terms in one block, since C is then
// written once, 2 to 4 %.
func byCache(level2 int) blocking {
	const terms, large = 256, 2 << 20
	if level2 >= large {
		return blocking{terms: terms, whole: mostTerms, columns: BlockN, rows: groupRows, single: true}
	}
	columns := 384
	if level2 > 0 {
		columns = min(BlockN, max(128, level2*3/4/(terms*WordSize)/128*128))
	}
	return blocking{terms: terms, columns: columns, rows: groupRows}
}

// deep has longer sums, for processors to which writing C costs more than packing A.
var deep = blocking{terms: 384, columns: 384, rows: groupRows}

// panels keeps a panel of B of 256 terms (32 KiB) in the level-1 cache while the tiles of a group pass over it: a third of what
// the others read from the level-2 cache. It is for level-1 caches of 48 KiB behind a slow second level.
func panels() blocking {
	b := byCache(cpu.Level2())
	b.panelFirst = true
	return b
}
