package kernel

import "unsafe"

// tiledBF16 is the built-in product in bfloat16, for processors with AVX-512
// BF16. It computes C in tiles as tiledGemm does, but a term is a pair of values
// along k, and both operands are packed: B a block of blockPairs x blockN pairs
// at a time, into panels that stay in the level-2 cache, A a group of tiles at a
// time. Packing rounds float32 operands.
type tiledBF16 struct {
	work freelist[bf16Work]
}

const (
	blockPairs = 256 // 512 values along k
	groupTiles = 8   // tiles of A packed together
	bf16Rows   = 14  // rows of the largest tile
	bf16Cols   = 32  // columns of a panel
	pairSize   = 4   // bytes
	tileWidth  = 16  // words of a term in a packed tile of a transposed A
)

// bf16Work is the memory of one product in progress.
type bf16Work struct {
	args  tileArgs
	panel [blockPairs * blockN]uint32
	tiles [groupTiles * blockPairs * tileWidth]uint32
	rows  [8 * 2 * blockPairs]uint16 // rows of a transposed B on their way into a panel
	zeros [blockN]float32            // the missing row of an odd k
}

// newTiledBF16 returns nil where the processor lacks the instructions.
func newTiledBF16() *tiledBF16 {
	if !hasBF16 {
		return nil
	}
	t := &tiledBF16{}
	t.work.make = func() *bf16Work { return new(bf16Work) }
	return t
}

// parts returns how many equal parts of at most most a length is cut into, and
// the length of a part, a multiple of unit.
func parts(length, most, unit int) int {
	n := (length + most - 1) / most
	return ((length+n-1)/n + unit - 1) / unit * unit
}

// multiply computes p, with M, N, K >= 1 and Alpha other than 0. Every element of
// C sums its products in the order of k, in blocks that depend on K alone.
func (t *tiledBF16) multiply(p *Product) {
	if p.Beta != 0 && p.Beta != 1 {
		for i := range p.M {
			scaleRow(p.C[i*p.LDC:i*p.LDC+p.N], p.Beta)
		}
	}
	w := t.work.take()
	w.args.alpha = p.Alpha
	stepK, stepN := parts(p.K, 2*blockPairs, 2), parts(p.N, blockN, bf16Cols)
	stepM := parts(p.M, groupTiles*bf16Rows, 1)
	for j := 0; j < p.N; j += stepN {
		nb := min(stepN, p.N-j)
		for k := 0; k < p.K; k += stepK {
			kb := min(stepK, p.K-k)
			w.args.k, w.args.add = (kb+1)/2, 0
			if p.Beta != 0 || k > 0 {
				w.args.add = 1
			}
			w.packB(p, k, kb, j, nb)
			for i := 0; i < p.M; i += stepM {
				w.group(p, i, min(stepM, p.M-i), k, kb, j, nb)
			}
		}
	}
	w.args.a, w.args.b, w.args.c = nil, nil, nil
	t.work.give(w)
}

// group computes rows i to i+mb and columns j to j+nb of C from the packed block
// of B, and does what follows the product after the last block along k.
func (w *bf16Work) group(p *Product, i, mb, k, kb, j, nb int) {
	count := (mb + bf16Rows - 1) / bf16Rows
	height := (mb + count - 1) / count
	pairs := w.args.k
	w.packA(p, i, mb, height, k, kb)
	args := (*byte)(unsafe.Pointer(&w.args))
	w.args.aRow, w.args.aK = pairs*pairSize, pairSize
	if p.TransA {
		w.args.aRow, w.args.aK = pairSize, tileWidth*pairSize
	}
	w.args.bK, w.args.cRow = bf16Cols*pairSize, p.LDC*floatSize
	for r := 0; r < mb; r += height {
		rows := min(height, mb-r)
		// Tiles lie one after the other in both layouts of A.
		at := r * pairs
		if p.TransA {
			at = r / height * pairs * tileWidth
		}
		w.args.a = unsafe.Pointer(&w.tiles[at])
		c := p.C[(i+r)*p.LDC+j:]
		tiles := &tilesBF16[rows-1]
		for q := 0; q < nb; q += bf16Cols {
			cols := min(bf16Cols, nb-q)
			w.args.mask = 1<<cols - 1
			w.args.b = unsafe.Pointer(&w.panel[q*pairs])
			w.args.c = unsafe.Pointer(&c[q])
			tiles[(cols-1)/16](args)
		}
		if k+kb == p.K {
			p.finishBlock(i+r, rows, j, nb, p.Bias)
		}
	}
}

// packB packs rows k to k+kb and columns j to j+nb of op(B) into panels of pairs.
// The columns of the last panel that B lacks are zeros or left from before; the
// tiles do not store what they give.
func (w *bf16Work) packB(p *Product, k, kb, j, nb int) {
	pairs := (kb + 1) / 2
	if p.TransB {
		for q := 0; q < nb; q += 8 {
			panel := w.panel[q/bf16Cols*bf16Cols*pairs+q%bf16Cols:]
			w.packTransposed(p.B, (j+q)*p.B.LD+k, min(8, nb-q), kb, panel)
		}
		return
	}
	w.packPairs(2, w.panel[:], bf16Cols*pairs, p.B, k*p.B.LD+j, kb, nb, bf16Cols)
}

// packA packs rows i to i+mb and columns k to k+kb of op(A) into w.tiles.
func (w *bf16Work) packA(p *Product, i, mb, height, k, kb int) {
	pairs := (kb + 1) / 2
	if p.TransA {
		w.packPairs(1, w.tiles[:], pairs*tileWidth, p.A, k*p.A.LD+i, kb, mb, height)
		return
	}
	halves := unsafe.Slice((*uint16)(unsafe.Pointer(&w.tiles[0])), 2*len(w.tiles))
	for r := range mb {
		halfRow(halves[r*2*pairs:(r+1)*2*pairs], p.A, (i+r)*p.A.LD+k, kb)
	}
}

// halfRow sets dst to n values of x from value at on, and to 0 beyond them.
func halfRow(dst []uint16, x Matrix, at, n int) {
	if x.BF16 != nil {
		copy(dst, x.BF16[at:at+n])
	} else {
		gemmConvert(&dst[0], &x.F32[at : at+n][0], n)
	}
	if n < len(dst) {
		dst[n] = 0
	}
}

// packTransposed packs a few rows of a transposed B, columns of op(B), from value
// at on: word r of row p of the panel becomes pair p of row r.
func (w *bf16Work) packTransposed(b Matrix, at, rows, kb int, panel []uint32) {
	pairs := (kb + 1) / 2
	for r := range rows {
		halfRow(w.rows[r*2*pairs:(r+1)*2*pairs], b, at+r*b.LD, kb)
	}
	from := unsafe.Slice((*uint32)(unsafe.Pointer(&w.rows[0])), len(w.rows)/2)
	whole := pairs / 8
	if whole > 0 {
		gemmPack8((*float32)(unsafe.Pointer(&panel[0])), bf16Cols*pairSize, (*float32)(unsafe.Pointer(&from[0])), pairs*pairSize, whole)
	}
	for r := range rows {
		for p := whole * 8; p < pairs; p++ {
			panel[p*bf16Cols+r] = from[r*pairs+p]
		}
	}
}

// packPairs packs kb rows of x from value at on, n columns in blocks of width,
// into vectors of 16 words a pair of rows. Block q begins at dst[q*block].
func (w *bf16Work) packPairs(vectors int, dst []uint32, block int, x Matrix, at, kb, n, width int) {
	blocks := (n + width - 1) / width
	mask, last := uint64(1)<<width-1, uint64(1)<<(n-(blocks-1)*width)-1
	size := 2
	pack := [2]packFunc{gemmPairsBF16Cols1, gemmPairsBF16Cols2}[vectors-1]
	base := func(i int) *byte { return (*byte)(unsafe.Pointer(&x.BF16[i])) }
	if x.BF16 == nil {
		size = floatSize
		pack = [2]packFunc{gemmPairsF32Cols1, gemmPairsF32Cols2}[vectors-1]
		base = func(i int) *byte { return (*byte)(unsafe.Pointer(&x.F32[i])) }
	}
	if whole := kb / 2; whole > 0 {
		pack((*byte)(unsafe.Pointer(&dst[0])), block*pairSize, base(at), base(at+x.LD), 2*x.LD*size, width*size, whole, blocks, mask, last)
	}
	if kb%2 != 0 {
		pack((*byte)(unsafe.Pointer(&dst[kb/2*16*vectors])), block*pairSize, base(at+(kb-1)*x.LD), (*byte)(unsafe.Pointer(&w.zeros[0])),
			0, width*size, 1, blocks, mask, last)
	}
}

type packFunc = func(dst *byte, dstBlock int, src0, src1 *byte, srcStep, srcBlock, pairs, blocks int, mask, last uint64)
