package gemm

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// lanesNEON are the columns that tiles count as one vector: two registers of four.
const lanesNEON = 8

// level2 is the level-2 cache that blocks are made for, since nothing tells its size on all systems: Neoverse N1, N2 and
// V1 have 512 KiB or 1 MiB a core, V2 and Apple's cores more.
const level2 = 1 << 20

// The functions for each height and width of a tile, from tiles_arm64.s.
var tilesNEON = [][2]func(*byte){
	{gemmTileNEONRows1Cols1, gemmTileNEONRows1Cols2},
	{gemmTileNEONRows2Cols1, gemmTileNEONRows2Cols2},
	{gemmTileNEONRows3Cols1, gemmTileNEONRows3Cols2},
	{gemmTileNEONRows4Cols1, gemmTileNEONRows4Cols2},
	{gemmTileNEONRows5Cols1, gemmTileNEONRows5Cols2},
	{gemmTileNEONRows6Cols1, gemmTileNEONRows6Cols2},
}

// New returns the built-in product of float32 for the instruction set in use, nil without one.
func New() *Tiled {
	if !cpu.HasNEON {
		return nil
	}
	t := &Tiled{level: cpu.NEON, Lanes: lanesNEON, tiles: tilesNEON, maxRows: len(tilesNEON),
		blocking: forRows(level2, len(tilesNEON))}
	t.Work.Make = func() *TileWork { return new(TileWork) }
	return t
}

// NewBF16 returns nil: there are no tiles of bfloat16 for this processor.
func NewBF16() *Tiled { return nil }

// AMX is the built-in product by the tile registers of AMX, which this processor lacks.
type AMX struct{ Tiled }

// NewAMX returns nil: there are no such registers here.
func NewAMX() *AMX { return nil }
