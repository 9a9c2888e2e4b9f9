package gemm

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// Variant is one way to tile and block the built-in product. Variants of one precision compute the same sums; where they cut
// them into other blocks of terms, the last bits differ. A result depends on the product and the variant alone.
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
	return []Variant{{Name: "rows", Description: "blocks of B in the level-2 cache, a row of tiles at a time", New: New}}
}

// VariantsBF16 returns the candidates in bfloat16, none where the processor lacks the instructions. The first is what
// NewBF16 returns.
func VariantsBF16() []Variant {
	if !cpu.HasBF16 {
		return nil
	}
	return []Variant{{Name: "rows", Description: "blocks of B in the level-2 cache, a row of tiles at a time", New: NewBF16}}
}
