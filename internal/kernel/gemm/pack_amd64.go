package gemm

import "unsafe"

// PackRows packs kb rows of x from value at on, n columns in blocks of width, into
// rows of stride words. Block q begins at dst[q*block].
func (t *Tiled) PackRows(dst []float32, stride, block int, x Matrix, at, kb, n, width int) {
	blocks := (n + width - 1) / width
	mask, last := uint64(1)<<width-1, uint64(1)<<(n-(blocks-1)*width)-1
	kind, size, rows := packWords, x.size(), 1
	switch {
	case !t.Masked:
		kind = packWordsAVX2
	case x.BF16 != nil:
		kind, rows = packFromHalves, 2
	case t.BF16:
		kind, rows = packFromWords, 2
	}
	pack := packers[kind][stride/t.Lanes-1]
	if whole := kb / rows; whole > 0 {
		second := x.first(at)
		if rows == 2 {
			second = x.first(at + x.LD)
		}
		pack((*byte)(unsafe.Pointer(&dst[0])), block*WordSize, x.first(at), second, rows*x.LD*size, width*size, whole,
			blocks, mask, last)
	}
	if kb%rows == 0 {
		return
	}
	most := BlockN / width * width
	for from := 0; from < n; from += most { // the last row has no second one
		m := min(most, n-from)
		blocks := (m + width - 1) / width
		pack((*byte)(unsafe.Pointer(&dst[kb/rows*stride+from/width*block])), block*WordSize,
			x.first(at+(kb-1)*x.LD+from), (*byte)(unsafe.Pointer(&zeros[0])),
			0, width*size, 1, blocks, mask, uint64(1)<<(m-(blocks-1)*width)-1)
	}
}

// zeros are the missing row of an odd k.
var zeros [BlockN]float32

// What packRows reads.
const (
	packWords      = iota // float32, as they are
	packFromWords         // float32, to pairs of bfloat16
	packFromHalves        // bfloat16, to pairs
	packWordsAVX2         // packWords without AVX-512
)

// packers holds the packing functions by what they read and how many vectors wide
// their blocks are.
var packers = [4][2]func(dst *byte, dstBlock int, src0, src1 *byte, srcStep, srcBlock, pairs, blocks int, mask,
	last uint64){
	{gemmWordsCols1, gemmWordsCols2},
	{gemmPairsF32Cols1, gemmPairsF32Cols2},
	{gemmPairsBF16Cols1, gemmPairsBF16Cols2},
	{gemmWordsAVX2Cols1, gemmWordsAVX2Cols2},
}
