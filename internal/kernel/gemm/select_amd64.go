package gemm

import "github.com/geoalign/geoalign/internal/kernel/cpu"

// The functions for each height and width of a tile, from gemm_tiles_amd64.s.
var (
	tilesAVX512 = [][2]func(*byte){
		{gemmTileAVX512Rows1Cols1, gemmTileAVX512Rows1Cols2},
		{gemmTileAVX512Rows2Cols1, gemmTileAVX512Rows2Cols2},
		{gemmTileAVX512Rows3Cols1, gemmTileAVX512Rows3Cols2},
		{gemmTileAVX512Rows4Cols1, gemmTileAVX512Rows4Cols2},
		{gemmTileAVX512Rows5Cols1, gemmTileAVX512Rows5Cols2},
		{gemmTileAVX512Rows6Cols1, gemmTileAVX512Rows6Cols2},
		{gemmTileAVX512Rows7Cols1, gemmTileAVX512Rows7Cols2},
		{gemmTileAVX512Rows8Cols1, gemmTileAVX512Rows8Cols2},
		{gemmTileAVX512Rows9Cols1, gemmTileAVX512Rows9Cols2},
		{gemmTileAVX512Rows10Cols1, gemmTileAVX512Rows10Cols2},
		{gemmTileAVX512Rows11Cols1, gemmTileAVX512Rows11Cols2},
		{gemmTileAVX512Rows12Cols1, gemmTileAVX512Rows12Cols2},
		{gemmTileAVX512Rows13Cols1, gemmTileAVX512Rows13Cols2},
		{gemmTileAVX512Rows14Cols1, gemmTileAVX512Rows14Cols2},
	}
	tilesBF16 = [][2]func(*byte){
		{gemmTileBF16Rows1Cols1, gemmTileBF16Rows1Cols2},
		{gemmTileBF16Rows2Cols1, gemmTileBF16Rows2Cols2},
		{gemmTileBF16Rows3Cols1, gemmTileBF16Rows3Cols2},
		{gemmTileBF16Rows4Cols1, gemmTileBF16Rows4Cols2},
		{gemmTileBF16Rows5Cols1, gemmTileBF16Rows5Cols2},
		{gemmTileBF16Rows6Cols1, gemmTileBF16Rows6Cols2},
		{gemmTileBF16Rows7Cols1, gemmTileBF16Rows7Cols2},
		{gemmTileBF16Rows8Cols1, gemmTileBF16Rows8Cols2},
		{gemmTileBF16Rows9Cols1, gemmTileBF16Rows9Cols2},
		{gemmTileBF16Rows10Cols1, gemmTileBF16Rows10Cols2},
		{gemmTileBF16Rows11Cols1, gemmTileBF16Rows11Cols2},
		{gemmTileBF16Rows12Cols1, gemmTileBF16Rows12Cols2},
		{gemmTileBF16Rows13Cols1, gemmTileBF16Rows13Cols2},
		{gemmTileBF16Rows14Cols1, gemmTileBF16Rows14Cols2},
	}
	tilesVNNI = [][2]func(*byte){
		{gemmTileVNNIRows1Cols1, gemmTileVNNIRows1Cols2},
		{gemmTileVNNIRows2Cols1, gemmTileVNNIRows2Cols2},
		{gemmTileVNNIRows3Cols1, gemmTileVNNIRows3Cols2},
		{gemmTileVNNIRows4Cols1, gemmTileVNNIRows4Cols2},
		{gemmTileVNNIRows5Cols1, gemmTileVNNIRows5Cols2},
		{gemmTileVNNIRows6Cols1, gemmTileVNNIRows6Cols2},
		{gemmTileVNNIRows7Cols1, gemmTileVNNIRows7Cols2},
		{gemmTileVNNIRows8Cols1, gemmTileVNNIRows8Cols2},
		{gemmTileVNNIRows9Cols1, gemmTileVNNIRows9Cols2},
		{gemmTileVNNIRows10Cols1, gemmTileVNNIRows10Cols2},
		{gemmTileVNNIRows11Cols1, gemmTileVNNIRows11Cols2},
		{gemmTileVNNIRows12Cols1, gemmTileVNNIRows12Cols2},
		{gemmTileVNNIRows13Cols1, gemmTileVNNIRows13Cols2},
		{gemmTileVNNIRows14Cols1, gemmTileVNNIRows14Cols2},
	}
	tilesShorts = [][2]func(*byte){
		{gemmTileShortsRows1Cols1, gemmTileShortsRows1Cols2},
		{gemmTileShortsRows2Cols1, gemmTileShortsRows2Cols2},
		{gemmTileShortsRows3Cols1, gemmTileShortsRows3Cols2},
		{gemmTileShortsRows4Cols1, gemmTileShortsRows4Cols2},
		{gemmTileShortsRows5Cols1, gemmTileShortsRows5Cols2},
		{gemmTileShortsRows6Cols1, gemmTileShortsRows6Cols2},
	}
	tilesAVX2 = [][2]func(*byte){
		{gemmTileAVX2Rows1Cols1, gemmTileAVX2Rows1Cols2},
		{gemmTileAVX2Rows2Cols1, gemmTileAVX2Rows2Cols2},
		{gemmTileAVX2Rows3Cols1, gemmTileAVX2Rows3Cols2},
		{gemmTileAVX2Rows4Cols1, gemmTileAVX2Rows4Cols2},
		{gemmTileAVX2Rows5Cols1, gemmTileAVX2Rows5Cols2},
		{gemmTileAVX2Rows6Cols1, gemmTileAVX2Rows6Cols2},
	}
)

// New returns the built-in product of float32 for the instruction set in use,
// nil without one.
func New() *Tiled {
	t := &Tiled{level: cpu.Level()}
	switch {
	case cpu.HasAVX512:
		t.level = cpu.AVX512 // AMX has no float32
		t.Lanes, t.Masked, t.tiles = 16, true, tilesAVX512
	case cpu.HasAVX2FMA:
		t.Lanes, t.tiles = 8, tilesAVX2
	default:
		return nil
	}
	return t.ready()
}

// NewBF16 returns the built-in product of bfloat16, nil where the processor
// lacks the instructions.
func NewBF16() *Tiled {
	if !cpu.HasBF16 {
		return nil
	}
	return (&Tiled{level: "avx512_bf16", BF16: true, Lanes: 16, Masked: true, tiles: tilesBF16}).ready()
}

// ready fills in what follows from the other fields.
func (t *Tiled) ready() *Tiled {
	t.maxRows = len(t.tiles)
	switch {
	case !t.Masked:
		t.blocking = forRows(cpu.Level2(), t.maxRows)
	case t.BF16:
		t.blocking = byCache(cpu.Level2())
	default:
		t.blocking = forFloat(cpu.Level2())
	}
	t.Work.Make = func() *TileWork { return new(TileWork) }
	return t
}
