package gemm

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// Variant is one way to tile and block the built-in product. Variants of one precision compute the same sums; where
// they cut them into other blocks of terms, the last bits differ. A result depends on the product and the variant
// alone.
type Variant struct {
	Name        string        // short, for tables and stored choices: stable between versions
	Description string        // what it does otherwise than the first
	New         func() *Tiled // makes one, safe for many goroutines; one Tiled serves all products of an engine
}

// Variants returns the candidates in float32 for the instruction set in use, none without one. The first is what New
// returns, the choice for this processor without a measurement.
func Variants() []Variant {
	if !cpu.HasAVX2FMA {
		return nil
	}
	return variants(New)
}

// VariantsBF16 returns the candidates in bfloat16, none where the processor lacks the instructions. The first is what
// NewBF16 returns.
func VariantsBF16() []Variant {
	if !cpu.HasBF16 {
		return nil
	}
	return variants(NewBF16)
}

// variants returns the blockings of what create makes.
func variants(create func() *Tiled) []Variant {
	with := func(change func(*blocking)) func() *Tiled {
		return func() *Tiled {
			t := create()
			change(&t.blocking)
			return t
		}
	}
	return []Variant{
		{"cache", "blocks of B as large as the level-2 cache takes, a row of tiles at a time", create},
		{"deep", "sums half as long again in narrower blocks: C is written less often and A packed more often", with(func(b *blocking) { *b = deep })},
		// A third of what the others read from the level-2 cache: for level-1 caches of 48 KiB, which hold a panel of
		// 256 terms (32 KiB), behind a slow second level.
		{"panels", "a panel of B stays in the level-1 cache while the tiles of a group pass over it; the bits are those of cache",
			with(func(b *blocking) { b.panelFirst = true })},
	}
}
