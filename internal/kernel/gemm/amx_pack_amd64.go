package gemm

import "unsafe"

// panels returns the block of B in tiles, packed if need be.
func (t *AMX) panels(w *AMXWork, b *amxPart, packed *Packed) []float32 {
	if packed != nil {
		return packed.words[packed.amxAt(b.k, b.steps, b.p.PackedFrom+b.j):]
	}
	t.packB(w.block, b)
	return w.block
}

// packB packs a block of op(B): tiles of pairs along k and columns.
func (t *AMX) packB(dst []float32, b *amxPart) {
	x := b.p.B
	if !b.p.TransB {
		packDown(dst, x, b.k*x.LD+b.j, b.kb, b.nb)
		return
	}
	packAlong(dst, x, b.j*x.LD+b.k, b.nb, b.kb)
	transposeTiles(dst, (b.nb+tileRows-1)/tileRows*b.steps)
}

// transposeTiles transposes n tiles, each where it is.
func transposeTiles(tiles []float32, n int) {
	at := (*byte)(unsafe.Pointer(&tiles[0]))
	amxTranspose(at, at, CacheLine, n)
}

// packA packs a group of op(A): tiles of rows and pairs along k.
func (t *AMX) packA(w *AMXWork, b *amxPart) {
	x, dst := b.p.A, w.group
	if !b.p.TransA {
		packAlong(dst, x, b.i*x.LD+b.k, b.mb, b.kb)
		return
	}
	from := 0
	if x.BF16 != nil {
		from = b.mb / amxPair * amxPair
		t.packColumns(w, b, from)
	}
	if from < b.mb {
		dst = dst[from/tileRows*b.steps*tileWords:]
		packDown(dst, x, b.k*x.LD+b.i+from, b.kb, b.mb-from)
		transposeTiles(dst, (b.mb-from+tileRows-1)/tileRows*b.steps)
	}
}

// packColumns packs so many rows of op(A), which are columns of bfloat16. It goes along the rows of memory.
func (t *AMX) packColumns(w *AMXWork, b *amxPart, columns int) {
	x := b.p.A
	for s := 0; s < b.steps && columns > 0; s++ {
		src, stride := x.BF16[(b.k+s*tileValues)*x.LD+b.i:], x.LD
		if rest := b.kb - s*tileValues; rest < tileValues {
			for i := range tileValues {
				if row := w.rows[i*amxRows:][:columns]; i < rest {
					copy(row, src[i*stride:])
				} else {
					clear(row)
				}
			}
			src, stride = w.rows[:], amxRows
		}
		for j := 0; j < columns; j += amxPair {
			dst := &w.group[(j/tileRows*b.steps+s)*tileWords]
			amxColumns((*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(&src[j])), stride*halfSize, b.steps*amxTile)
		}
	}
}

// alongSteps is how many tiles along k are written at a time, which stay in the level-1 cache meanwhile.
const alongSteps = 16

// packAlong packs rows of n values along k of x from value at on: each becomes a row of tiles. Rows that a last tile
// lacks hold anything, values beyond n are 0.
func packAlong(dst []float32, x Matrix, at, rows, n int) {
	steps, rest := amxSteps(n), uint64(1)<<(n%tileValues)-1
	pack, size := amxRowsF32, x.size()
	if x.BF16 != nil {
		pack = amxRowsBF16
	}
	for r := 0; r < rows; r += tileRows {
		for s := 0; s < steps; s += alongSteps {
			whole, last := min(alongSteps, n/tileValues-s), uint64(0)
			if whole < alongSteps {
				last = rest
			}
			pack((*byte)(unsafe.Pointer(&dst[(r/tileRows*steps+s)*tileWords])), x.first(at+r*x.LD+s*tileValues),
				x.LD*size, min(tileRows, rows-r), whole, last)
		}
	}
}

// packDown packs n rows along k of x from value at on, of so many columns: each column becomes one of tiles. Columns
// that a last tile lacks are 0, and so are pairs beyond n.
func packDown(dst []float32, x Matrix, at, n, columns int) {
	steps := amxSteps(n)
	block := steps * tileWords
	// Two tiles at a time: with more their places compete for few lines of the level-1 cache (0.07 ns a value with 16,
	// 0.04 with two).
	for q := 0; q < columns; q += amxPair {
		pairs.PackRows(dst[q/tileRows*block:], tileRows, block, x, at+q, n, min(amxPair, columns-q), tileRows)
	}
	if whole := (n + 1) / 2 * tileRows; whole < block {
		for q := 0; q < columns; q += tileRows {
			clear(dst[q/tileRows*block:][whole:block])
		}
	}
}

// pairs packs rows in pairs along k.
var pairs = &Tiled{BF16: true, Lanes: tileRows, Masked: true}

// NewPacked makes room for op(B) of k x n values, all of them 0 until Repack.
func (t *AMX) NewPacked(k, n int) *Packed {
	p := &Packed{K: k, N: n, by: t, columns: (n + amxPair - 1) / amxPair * amxPair}
	step := amxK(k)
	p.words = make([]float32, p.amxAt(k/step*step, 0, 0)+amxSteps(k%step)*tileRows*p.columns)
	return p
}

// Panel returns the columns of a panel.
func (t *AMX) Panel() int { return amxPair }

// Repack packs columns from lo to hi of op(x), where op transposes if asked, into p, which t has made. lo is a multiple
// of Panel, and so is hi or it is N; threads may pack parts of their own.
func (t *AMX) Repack(p *Packed, x Matrix, trans bool, lo, hi int) {
	of := Product{B: x, TransB: trans, K: p.K}
	step := amxK(p.K)
	for k := 0; k < p.K; k += step {
		b := amxPart{p: &of, j: lo, nb: hi - lo, k: k, kb: min(step, p.K-k)}
		b.steps = amxSteps(b.kb)
		t.packB(p.words[p.amxAt(k, b.steps, lo):], &b)
	}
}

// amxAt returns the first word of the tiles of column j in the block of values from k on, which has so many tiles along
// k.
func (p *Packed) amxAt(k, steps, j int) int { return amxSteps(k)*tileRows*p.columns + j*steps*tileRows }

// packed returns what p was packed as, nil where it has other panels or begins within one.
func (t *AMX) packed(p *Product) *Packed {
	if x := p.Packed; x != nil && x.by == t && p.PackedFrom%amxPair == 0 {
		return x
	}
	return nil
}
