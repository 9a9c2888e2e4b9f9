package gemm

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// lanesNEON are the columns that tiles count as one vector: two registers of four.
const lanesNEON = 8

// level2 is the level-2 cache that blocks are made for, since nothing tells its size on all systems: Neoverse N1, N2
// and V1 have 512 KiB or 1 MiB a core, V2 and Apple's cores more.
const level2 = 1 << 20

// The functions for each height and width of a tile, from tiles_arm64.s.
var (
	tilesNEON = [][2]func(*byte){
		{gemmTileNEONRows1Cols1, gemmTileNEONRows1Cols2},
		{gemmTileNEONRows2Cols1, gemmTileNEONRows2Cols2},
		{gemmTileNEONRows3Cols1, gemmTileNEONRows3Cols2},
		{gemmTileNEONRows4Cols1, gemmTileNEONRows4Cols2},
		{gemmTileNEONRows5Cols1, gemmTileNEONRows5Cols2},
		{gemmTileNEONRows6Cols1, gemmTileNEONRows6Cols2},
	}
	tilesBFDOT = [][2]func(*byte){
		{gemmTileBFDOTRows1Cols1, gemmTileBFDOTRows1Cols2},
		{gemmTileBFDOTRows2Cols1, gemmTileBFDOTRows2Cols2},
		{gemmTileBFDOTRows3Cols1, gemmTileBFDOTRows3Cols2},
		{gemmTileBFDOTRows4Cols1, gemmTileBFDOTRows4Cols2},
		{gemmTileBFDOTRows5Cols1, gemmTileBFDOTRows5Cols2},
		{gemmTileBFDOTRows6Cols1, gemmTileBFDOTRows6Cols2},
	}
)

// New returns the built-in product of float32 for the instruction set in use, nil without one.
func New() *Tiled {
	if !cpu.HasNEON {
		return nil
	}
	return ready(&Tiled{level: cpu.NEON, tiles: tilesNEON})
}

// NewBF16 returns the built-in product of bfloat16, nil where the processor lacks the instructions.
func NewBF16() *Tiled {
	if !cpu.HasBF16 {
		return nil
	}
	return ready(&Tiled{level: "neon_bf16", BF16: true, tiles: tilesBFDOT})
}

// ready fills in what follows from the other fields.
func ready(t *Tiled) *Tiled {
	t.Lanes, t.maxRows = lanesNEON, len(t.tiles)
	t.blocking = forRows(level2, t.maxRows)
	t.Work.Make = func() *TileWork { return new(TileWork) }
	return t
}

// AMX is the built-in product by the tile registers of AMX, which this processor lacks.
type AMX struct{ Tiled }

// NewAMX returns nil: there are no such registers here.
func NewAMX() *AMX { return nil }
