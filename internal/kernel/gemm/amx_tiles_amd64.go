package gemm

import "unsafe"

// TilesOperand is an operand that functions on tiles read as it lies in memory. Of a left operand row i of a tile has
// the 32 values along k of row i of the operand; of a right one it has the pairs i along k of 16 columns, and a panel
// has 32. Rows lie Row bytes apart and tiles along k Step bytes. What tiles along k have beyond k must be 0 on both
// sides.
type TilesOperand struct {
	At        unsafe.Pointer
	Row, Step int
	Tile      int // bytes from a tile of rows to the next, 0 for 16 rows
}

// TilesProduct is a product of two such operands: C = Alpha*A*B, or that is added. C is M x N.
type TilesProduct struct {
	M, N, Steps int
	Alpha       float32
	Add         bool
	A, B        TilesOperand
	Panel       int // bytes from a panel of B to the next
	C           []float32
	LDC         int
}

// MultiplyTiles computes p.
func (t *AMX) MultiplyTiles(w *AMXWork, p *TilesProduct) {
	a, whole, tile := &w.args, p.M/amxPair, p.A.Tile
	if tile == 0 {
		tile = tileRows * p.A.Row
	}
	for q := 0; q < p.N; q += amxPair {
		columns := min(amxPair, p.N-q)
		*a = amxArgs{
			config: unsafe.Pointer(&w.config), steps: p.Steps, alpha: p.Alpha, end: endSet,
			a: p.A.At, aRow: p.A.Row, aTile: tile, aStep: p.A.Step, aPanel: 2 * tile,
			b: unsafe.Add(p.B.At, q/amxPair*p.Panel), bRow: p.B.Row, bTile: tileRows * WordSize, bStep: p.B.Step,
			sums: unsafe.Pointer(&w.strip[0]), row: amxPair * WordSize,
			out: unsafe.Pointer(&p.C[q]), outRow: p.LDC * WordSize, outStep: amxPair * p.LDC * WordSize,
		}
		if p.Add {
			a.end = endAdd
		}
		if a.panels = whole; whole > 0 {
			w.run(amxPair, columns)
		}
		if rest := p.M % amxPair; rest > 0 {
			a.panels, a.a = 1, unsafe.Add(p.A.At, whole*a.aPanel)
			a.out = unsafe.Pointer(&p.C[whole*amxPair*p.LDC+q])
			w.run(rest, columns)
		}
	}
	w.args = amxArgs{}
}

// TransposeWords sets tiles, one after the other, to the transposes of 16 x 16 words of rows of src, stride words
// apart: n tiles down the rows.
func (t *AMX) TransposeWords(tiles, src []float32, stride, n int) {
	_, _ = tiles[n*tileWords-1], src[(n*tileRows-1)*stride+tileRows-1]
	amxTranspose((*byte)(unsafe.Pointer(&tiles[0])), (*byte)(unsafe.Pointer(&src[0])), stride*WordSize, n)
}
