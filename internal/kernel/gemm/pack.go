//go:build amd64 || arm64

package gemm

import "unsafe"

// packAhead is how many columns before its turn a transposed column is asked for: two groups of 8, whose packing takes
// about as long as memory to answer.
const packAhead = 16

// packB packs the block of op(B) into panels at dst. The columns of the last panel that
// B lacks hold anything; what the tiles make of them is not stored.
func (t *Tiled) packB(w *TileWork, dst []float32, b *block) {
	x, width := b.p.B, 2*t.Lanes
	if !b.p.TransB {
		t.PackRows(dst, width, width*b.terms, x, b.k*x.LD+b.j, b.kb, b.nb, width)
		return
	}
	size := x.size()
	for q := 0; q < b.nb; q += 8 {
		// Columns of op(B) are rows of B, each in a place of its own that the processor does not foresee.
		if ahead := q + packAhead; ahead < b.nb {
			gemmPrefetch(x.first((b.j+ahead)*x.LD+b.k), x.LD*size, (b.kb*size+CacheLine-1)/CacheLine,
				min(8, b.nb-ahead))
		}
		panel := dst[q/width*width*b.terms+q%width:]
		t.packTransposed(w, panel, x, (b.j+q)*x.LD+b.k, min(8, b.nb-q), b.kb)
	}
}

// packA packs the group of op(A) into w.group, tile after tile: the rows of a tile
// one after the other, or, where A is transposed, its terms.
func (t *Tiled) packA(w *TileWork, b *block) {
	x := b.p.A
	switch {
	case b.p.TransA:
		t.PackRows(w.group[:], t.Lanes, b.terms*t.Lanes, x, b.k*x.LD+b.i, b.kb, b.mb, b.height)
	case t.BF16:
		PackHalves(AsHalves(w.group[:]), 2*b.stride, x, b.i*x.LD+b.k, b.mb, b.kb)
	default:
		for r := range b.mb {
			copy(w.group[r*b.stride:r*b.stride+b.kb], x.F32[(b.i+r)*x.LD+b.k:])
		}
	}
}

// PackHalves sets the rows of dst, stride values apart, to n values of the rows of x from
// value at on. If n is odd, a 0 follows each row.
func PackHalves(dst []uint16, stride int, x Matrix, at, rows, n int) {
	if x.BF16 == nil {
		gemmConvert(&dst[0], 2*stride, &x.F32[at], x.LD*WordSize, n, rows)
	} else {
		for r := range rows {
			copy(dst[r*stride:r*stride+n], x.BF16[at+r*x.LD:])
		}
	}
	if n%2 != 0 {
		for r := range rows {
			dst[r*stride+n] = 0
		}
	}
}

// packTransposed packs a few rows of a transposed B, columns of op(B), from value
// at on: term p of row r becomes word r of row p of the panel.
func (t *Tiled) packTransposed(w *TileWork, panel []float32, x Matrix, at, rows, kb int) {
	from, ld, terms, width := x.F32, x.LD, kb, 2*t.Lanes
	if t.BF16 {
		terms = (kb + 1) / 2
		PackHalves(w.rows[:], 2*terms, x, at, rows, kb)
		from, ld, at = asWords(w.rows[:]), terms, 0
	}
	whole := 0
	if k8 := terms / 8; k8 > 0 && (rows == 8 || t.BF16) {
		gemmPack8(&panel[0], width*WordSize, &from[at], ld*WordSize, k8)
		whole = 8 * k8
	}
	if whole == terms {
		return
	}
	for r := range rows {
		row := from[at+r*ld:][:terms]
		for p := whole; p < terms; p++ {
			panel[p*width+r] = row[p]
		}
	}
}

// Transpose sets dst[p*ldDst+j] = src[j*ld+p] for j < rows and p < n. It is fast for rows and n in multiples of 8.
func (t *Tiled) Transpose(dst []float32, ldDst int, src []float32, ld, rows, n int) {
	whole, fast := rows&^7, n&^7
	for j := 0; j < whole && fast > 0; j += 8 {
		_, _ = dst[(fast-1)*ldDst+j+7], src[(j+7)*ld+fast-1]
		gemmPack8(&dst[j], ldDst*WordSize, &src[j*ld], ld*WordSize, fast/8)
	}
	for j := range rows {
		from := 0
		if j < whole {
			from = fast
		}
		row := src[j*ld:]
		for p := from; p < n; p++ {
			dst[p*ldDst+j] = row[p]
		}
	}
}

// copyRows copies kb rows of cols values from src to rows of stride values.
func copyRows(dst, src []float32, ld, kb, cols, stride int) {
	for p := range kb {
		copy(dst[p*stride:p*stride+cols], src[p*ld:])
	}
}

// AsHalves returns the memory of x as twice as many bfloat16.
func AsHalves(x []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(&x[0])), 2*len(x))
}

// asWords returns the memory of x as half as many words.
func asWords(x []uint16) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&x[0])), len(x)/2)
}

// size returns the bytes of a value.
func (x Matrix) size() int {
	if x.BF16 != nil {
		return 2
	}
	return WordSize
}

// first returns where value i is.
func (x Matrix) first(i int) *byte {
	if x.BF16 != nil {
		return (*byte)(unsafe.Pointer(&x.BF16[i]))
	}
	return (*byte)(unsafe.Pointer(&x.F32[i]))
}
