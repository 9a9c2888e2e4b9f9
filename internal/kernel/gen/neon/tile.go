package main

import "fmt"

// Offsets in tileArgs of internal/kernel/gemm.
const (
	offK     = 0
	offA     = 8
	offARow  = 16
	offAK    = 24
	offB     = 32
	offBK    = 40
	offC     = 48
	offCRow  = 56
	offAlpha = 64
	offAdd   = 68
)

// tileRows is the height of the largest tile: 6 x 4 sums, 6 of A and 2 of B are the 32 registers. tileLanes are the
// columns that tiles count as one: two registers.
const (
	tileRows  = 6
	tileLanes = 8
)

const (
	quad      = 4 // values in a register
	quadBytes = 16
	floatSize = 4
)

// General registers of a tile.
const (
	regT    R = 0
	regK    R = 1
	regA    R = 2
	regARow R = 3
	regAK   R = 4
	regB    R = 5
	regBK   R = 6
	regC    R = 7
	regCRow R = 8
	regRow  R = 9  // of the first row of A; those of the others follow
	regTemp R = 15 // behind them
)

// tileWriter writes one function: rows x quads registers of sums.
type tileWriter struct {
	*writer
	rows, quads int
	sums        []V // by row
	a, b        []V
	lane        element // what multiplies
}

// tile writes a function that sets a tile of rows x 8*cols of C to alpha*A*B, or adds it, as the tiles of amd64 do: the
// tile must be whole. A term is a float32 or, with BFDOT, a pair of bfloat16 along k. A whose terms lie side by side is
// read four terms at a time, one whose rows do all rows at once; other strides work, too.
func (w *writer) tile(set string, lane element, rows, cols int) {
	t := &tileWriter{writer: w, rows: rows, quads: 2 * cols, lane: lane}
	name := fmt.Sprintf("gemmTile%sRows%dCols%d", set, rows, cols)
	w.function(name, "func(t *byte)", 8,
		fmt.Sprintf("%s multiplies %d rows of A by %d columns of B; t points to a tileArgs.", name, rows, cols*tileLanes))
	next := V(0)
	take := func(n int) []V {
		out := make([]V, n)
		for i := range out {
			out[i] = next
			next++
		}
		return out
	}
	t.sums, t.a, t.b = take(rows*t.quads), take(rows), take(2)
	t.begin()
	t.alongTerms()
	t.alongRows()
	t.store()
}

// begin loads the arguments, clears the sums and asks for C.
func (t *tileWriter) begin() {
	t.line("MOVD t+0(FP), %v", regT)
	t.line("LDP %d(%v), (%v, %v)", offK, regT, regK, regA)
	t.line("LDP %d(%v), (%v, %v)", offARow, regT, regARow, regAK)
	t.line("LDP %d(%v), (%v, %v)", offB, regT, regB, regBK)
	t.line("LDP %d(%v), (%v, %v)", offC, regT, regC, regCRow)
	t.line("MOVD %v, %v", regC, regTemp)
	for i, v := range t.sums {
		t.line("%s", zero(v))
		if i%t.quads == 0 {
			t.line("PRFM (%v), PLDL1KEEP", regTemp)
			t.line("ADD %v, %v", regCRow, regTemp)
		}
	}
	t.line("CMP $%d, %v", floatSize, regAK)
	t.line("BEQ terms")
	t.line("CMP $%d, %v", floatSize, regARow)
	t.line("BEQ rows")
	t.label("terms")
	t.line("MOVD %v, %v", regA, regRow)
	for i := 1; i < t.rows; i++ {
		t.line("ADD %v, %v, %v", regARow, regRow+R(i-1), regRow+R(i))
	}
}

// term multiplies one term: lane(i) says where that of row i is.
func (t *tileWriter) term(lane func(i int) (V, int)) {
	for j := 0; j < t.quads; j += 2 {
		t.line("FLDPQ %d(%v), (F%d, F%d)", j*quadBytes, regB, int(t.b[0]), int(t.b[1]))
		if j+2 == t.quads {
			t.line("ADD %v, %v", regBK, regB)
		}
		for h := range 2 {
			for i := range t.rows {
				a, l := lane(i)
				t.line("%s", t.lane.of(t.sums[i*t.quads+j+h], t.b[h], a, l))
			}
		}
	}
}

// alongTerms reads each row of A by itself: four terms at once where they lie side by side, and what is left, or all,
// one by one.
func (t *tileWriter) alongTerms() {
	t.line("CMP $%d, %v", floatSize, regAK)
	t.line("BNE single")
	t.line("SUBS $%d, %v", quad, regK)
	t.line("BLT last")
	t.label("four")
	for i, a := range t.a {
		t.line("VLD1.P %d(%v), [V%d.S4]", quadBytes, regRow+R(i), int(a))
	}
	for k := range quad {
		t.term(func(i int) (V, int) { return t.a[i], k })
	}
	t.line("SUBS $%d, %v", quad, regK)
	t.line("BGE four")
	t.label("last")
	t.line("ADDS $%d, %v", quad, regK)
	t.line("BEQ stored")
	t.label("single")
	for i, a := range t.a {
		t.line("FMOVS (%v), F%d", regRow+R(i), int(a))
		t.line("ADD %v, %v", regAK, regRow+R(i))
	}
	t.term(func(i int) (V, int) { return t.a[i], 0 })
	t.line("SUBS $1, %v", regK)
	t.line("BNE single")
	t.line("B stored")
}

// alongRows reads the rows of a term at once.
func (t *tileWriter) alongRows() {
	t.label("rows")
	for i := 0; i < t.rows; {
		left, a := t.rows-i, int(t.a[i/quad])
		switch {
		case left >= quad:
			t.line("FMOVQ (%v), F%d", regA, a)
			i += quad
		case left == 3: // two, and one more
			t.line("FMOVD %d(%v), F%d", i*floatSize, regA, a)
			t.line("ADD $%d, %v, %v", (i+2)*floatSize, regA, regTemp)
			t.line("%s", loadLane(V(a), 2, regTemp))
			i += 3
		case left == 2:
			t.line("FMOVD %d(%v), F%d", i*floatSize, regA, a)
			i += 2
		default:
			t.line("FMOVS %d(%v), F%d", i*floatSize, regA, a)
			i++
		}
	}
	t.line("ADD %v, %v", regAK, regA)
	t.term(func(i int) (V, int) { return t.a[i/quad], i % quad })
	t.line("SUBS $1, %v", regK)
	t.line("BNE rows")
}

// store writes alpha times the sums, or adds them.
func (t *tileWriter) store() {
	alpha := t.b[1]
	t.label("stored")
	t.line("FMOVS %d(%v), F%d", offAlpha, regT, int(alpha))
	t.line("MOVWU %d(%v), %v", offAdd, regT, regTemp)
	t.line("CBNZ %v, adds", regTemp)
	free := append(t.a[:t.rows:t.rows], t.b[0])
	x, y := free[0], free[1]
	for _, adds := range []bool{false, true} {
		if adds {
			t.label("adds")
		}
		for i := range t.rows {
			for j := 0; j < t.quads; j += 2 {
				sums := t.sums[i*t.quads+j:]
				if adds {
					t.line("FLDPQ %d(%v), (F%d, F%d)", j*quadBytes, regC, int(x), int(y))
					t.line("%s", FMLALane.of(x, sums[0], alpha, 0))
					t.line("%s", FMLALane.of(y, sums[1], alpha, 0))
				} else {
					t.line("%s", FMULLane.of(x, sums[0], alpha, 0))
					t.line("%s", FMULLane.of(y, sums[1], alpha, 0))
				}
				t.line("FSTPQ (F%d, F%d), %d(%v)", int(x), int(y), j*quadBytes, regC)
			}
			if i+1 < t.rows {
				t.line("ADD %v, %v", regCRow, regC)
			}
		}
		t.line("RET")
	}
}
