package gemm

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/freelist"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// AMX is the built-in product of bfloat16 by the tile registers of AMX. Its unit is a tile of 16 rows of 64 bytes: of A 16 rows of 32 values along k, of
// B 16 pairs of values along k and 16 columns, of C 16 x 16 sums in float32. Two tiles of A and two of B make four of C, which takes as many loads of
// tiles as products, the best that eight registers allow.
//
// Both operands are packed into tiles that lie one after the other along k. A block of B that fills most of the level-2 cache
// stays there while all rows of A pass over it, two tiles of rows at a time. Sums are cut along k so that these two tiles of rows stay in
// the level-1 cache meanwhile. Where C is rounded, the sums of two tiles of rows are in a strip of the level-2 cache until they are whole.
type AMX struct {
	work freelist.List[amxWork]
}

const (
	tileRows   = 16   // of a tile; also the words of one
	tileValues = 32   // bfloat16 values of a row
	tileWords  = 256  // of a tile
	amxPair    = 32   // rows or columns of two tiles
	amxTerms   = 1536 // most values along k of a block
	amxSub     = 12   // most tiles along k for which two tiles of rows stay in the level-1 cache: 24 KiB

	amxBlock   = 288 << 10 // words of a block of B
	amxColumns = 1024      // most columns of one
	amxGroup   = 1536 << 10
	amxSmall   = 128 // rows of a group of A where each group passes over B once
)

// amxArgs is what the functions on tiles read; the generator in ../gen/gemm knows the offsets.
type amxArgs struct {
	config  unsafe.Pointer // 0
	a       unsafe.Pointer // 8
	aTile   int            // 16: from one tile of rows to the next, in bytes
	steps   int            // 24: tiles along k
	b       unsafe.Pointer // 32
	bTile   int            // 40: from one tile of columns to the next, in bytes
	bPanel  int            // 48: from two tiles of columns to the next two
	from    unsafe.Pointer // 56: sums that products are added to, or nil
	fromRow int            // 64: stride in bytes
	to      unsafe.Pointer // 72
	toRow   int            // 80
	panels  int            // 88: at least 1
}

// tileConfig is the operand of LDTILECFG: the shapes of the eight tiles.
type tileConfig struct {
	palette, start byte
	_              [14]byte
	bytes          [16]uint16 // of a row
	rows           [16]byte
}

// amxWork is the memory of one product in progress.
type amxWork struct {
	block  []float32 // of B
	group  []float32 // of A
	strip  []float32 // of C
	config tileConfig
	args   amxArgs
}

// NewAMX returns the built-in product by AMX, nil where the processor or the system has none.
func NewAMX() *AMX {
	if !cpu.HasAMX {
		return nil
	}
	t := &AMX{}
	t.work.Make = func() *amxWork {
		return &amxWork{block: make([]float32, amxBlock), group: make([]float32, amxGroup), strip: make([]float32, amxPair*amxColumns)}
	}
	return t
}

// amxSteps returns the tiles along k of n values.
func amxSteps(n int) int { return (n + tileValues - 1) / tileValues }

// amxK returns the values along k of the blocks that k values are cut into.
func amxK(k int) int { return parts(k, amxTerms, tileValues) }

// Multiply computes p, with M, N, K >= 1 and Alpha other than 0. Every element of C sums its products in an order that depends on K alone.
func (t *AMX) Multiply(p *Product) {
	if p.Beta != 0 && p.Beta != 1 {
		for i := range p.M {
			ScaleRow(p.C[i*p.LDC:i*p.LDC+p.N], p.Beta)
		}
	}
	w := t.work.Take()
	stepK, packed := amxK(p.K), t.packed(p)
	columns := min(amxColumns, amxBlock/(amxSteps(min(stepK, p.K))*tileRows)/amxPair*amxPair)
	stepN := parts(p.N, columns, amxPair)
	rows := amxGroup / (amxSteps(min(stepK, p.K)) * tileRows) / amxPair * amxPair
	if stepN >= p.N {
		rows = min(rows, amxSmall)
	}
	stepM := parts(p.M, rows, amxPair)
	for k := 0; k < p.K; k += stepK {
		b := amxPart{p: p, k: k, kb: min(stepK, p.K-k), add: k > 0 || p.Beta != 0}
		b.steps, b.last = amxSteps(b.kb), k+b.kb == p.K
		if stepN >= p.N {
			b.nb = p.N
			panels := t.panels(w, &b, packed)
			for b.i = 0; b.i < p.M; b.i += stepM {
				b.mb = min(stepM, p.M-b.i)
				t.packA(w, &b)
				t.group(w, &b, panels)
			}
			continue
		}
		for b.i = 0; b.i < p.M; b.i += stepM {
			b.mb = min(stepM, p.M-b.i)
			t.packA(w, &b)
			for b.j = 0; b.j < p.N; b.j += stepN {
				b.nb = min(stepN, p.N-b.j)
				t.group(w, &b, t.panels(w, &b, packed))
			}
		}
	}
	w.args = amxArgs{}
	t.work.Give(w)
	if p.Follows() && !p.FinishesTiles() {
		p.Finish()
	}
}

// amxPart is the part of a product in progress: rows i to i+mb, columns j to j+nb and values k to k+kb.
type amxPart struct {
	p                   *Product
	i, mb, j, nb, k, kb int
	steps               int  // tiles along k
	add                 bool // to what C has
	last                bool // values along k
}

// panels returns the block of B in tiles, packed if need be.
func (t *AMX) panels(w *amxWork, b *amxPart, packed *Packed) []float32 {
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
	amxTranspose((*byte)(unsafe.Pointer(&dst[0])), (b.nb+tileRows-1)/tileRows*b.steps)
}

// packA packs a group of op(A): tiles of rows and pairs along k.
func (t *AMX) packA(w *amxWork, b *amxPart) {
	x, dst := b.p.A, w.group
	if !b.p.TransA {
		packAlong(dst, x, b.i*x.LD+b.k, b.mb, b.kb)
		return
	}
	packDown(dst, x, b.k*x.LD+b.i, b.kb, b.mb)
	amxTranspose((*byte)(unsafe.Pointer(&dst[0])), (b.mb+tileRows-1)/tileRows*b.steps)
}

// packAlong packs rows of n values along k of x from value at on: each becomes a row of tiles. Rows that a last tile lacks hold anything,
// values beyond n are 0.
func packAlong(dst []float32, x Matrix, at, rows, n int) {
	steps, rest := amxSteps(n), uint64(1)<<(n%tileValues)-1
	pack, size := amxRowsF32, x.size()
	if x.BF16 != nil {
		pack = amxRowsBF16
	}
	for r := 0; r < rows; r += tileRows {
		pack((*byte)(unsafe.Pointer(&dst[r/tileRows*steps*tileWords])), x.first(at+r*x.LD), x.LD*size, min(tileRows, rows-r), n/tileValues, rest)
	}
}

// packDown packs n rows along k of x from value at on, of so many columns: each column becomes one of tiles. Columns that a last tile lacks are 0, and
// so are pairs beyond n.
func packDown(dst []float32, x Matrix, at, n, columns int) {
	steps := amxSteps(n)
	block := steps * tileWords
	pairs.PackRows(dst, tileRows, block, x, at, n, columns, tileRows)
	if whole := (n + 1) / 2 * tileRows; whole < block {
		for q := 0; q < columns; q += tileRows {
			clear(dst[q/tileRows*block:][whole:block])
		}
	}
}

// pairs packs rows in pairs along k.
var pairs = &Tiled{BF16: true, Lanes: tileRows, Masked: true}

// group computes the rows and columns of b, two tiles of rows at a time.
func (t *AMX) group(w *amxWork, b *amxPart, panels []float32) {
	sub := parts(b.steps, amxSub, 1)
	for r := 0; r < b.mb; r += amxPair {
		rows := min(amxPair, b.mb-r)
		c, ldc := t.sums(w, b, r)
		from, fromRow := b.p.C[(b.i+r)*b.p.LDC+b.j:], b.p.LDC
		if !b.add || b.p.Alpha != 1 {
			from = nil
		}
		for s := 0; s < b.steps; s += sub {
			w.args = amxArgs{config: unsafe.Pointer(&w.config), steps: min(sub, b.steps-s), aTile: b.steps * tileWords * WordSize,
				a:     unsafe.Pointer(&w.group[(r/tileRows*b.steps+s)*tileWords]),
				bTile: b.steps * tileWords * WordSize, bPanel: 2 * b.steps * tileWords * WordSize, fromRow: fromRow * WordSize, toRow: ldc * WordSize}
			t.products(w, rows, b.nb, panels[s*tileWords:], from, c)
			from, fromRow = c, ldc
		}
		t.finish(w, b, r, rows)
	}
}

// products computes rows of nb columns: whole panels, and then what is left in one.
func (t *AMX) products(w *amxWork, rows, nb int, panels, from, c []float32) {
	for _, q := range [2]struct{ at, columns, panels int }{{0, amxPair, nb / amxPair}, {nb / amxPair * amxPair, nb % amxPair, 1}} {
		if q.columns == 0 || q.panels == 0 {
			continue
		}
		w.config.set(rows, q.columns)
		a := &w.args
		a.panels, a.b, a.to = q.panels, unsafe.Pointer(&panels[q.at/amxPair*a.bPanel/WordSize]), unsafe.Pointer(&c[q.at])
		if a.from = nil; from != nil {
			a.from = unsafe.Pointer(&from[q.at])
		}
		args := (*byte)(unsafe.Pointer(a))
		switch {
		case rows > tileRows && q.columns > tileRows:
			amxProduct2x2(args)
		case rows > tileRows:
			amxProduct2x1(args)
		case q.columns > tileRows:
			amxProduct1x2(args)
		default:
			amxProduct1x1(args)
		}
	}
}

// set sets the shapes of the tiles for rows and columns of C.
func (c *tileConfig) set(rows, columns int) {
	c.palette = 1
	r := [2]int{min(rows, tileRows), max(rows-tileRows, 1)}
	n := [2]int{min(columns, tileRows), max(columns-tileRows, 1)}
	for i := range 2 {
		for j := range 2 {
			c.rows[2*i+j], c.bytes[2*i+j] = byte(r[i]), uint16(n[j]*WordSize)
		}
		c.rows[4+i], c.bytes[4+i] = byte(r[i]), tileRows*WordSize
		c.rows[6+i], c.bytes[6+i] = tileRows, uint16(n[i]*WordSize)
	}
}

// strip says whether the sums of b are not made in C.
func (b *amxPart) strip() bool { return b.p.Alpha != 1 || b.p.Half != nil && b.last }

// sums returns where the sums of the rows from r of the group on are made, and their stride.
func (t *AMX) sums(w *amxWork, b *amxPart, r int) ([]float32, int) {
	if b.strip() {
		return w.strip, amxColumns
	}
	return b.p.C[(b.i+r)*b.p.LDC+b.j:], b.p.LDC
}

// finish multiplies rows from r of the group on by alpha and does what follows the product, where that is done in the cache.
func (t *AMX) finish(w *amxWork, b *amxPart, r, rows int) {
	p := b.p
	follows := b.last && (p.Bias != nil || p.Follows()) && (!p.Follows() || p.FinishesTiles())
	if p.Alpha == 1 && !follows {
		return
	}
	for x := range rows {
		i := b.i + r + x
		row := p.C[i*p.LDC+b.j:][:b.nb]
		if b.strip() {
			sums := w.strip[x*amxColumns:][:b.nb]
			switch {
			case p.Alpha == 1:
				row = sums
			case b.add:
				vector.Axpy(row, p.Alpha, sums)
			default:
				vector.Scale(row, p.Alpha, sums)
			}
		}
		if follows {
			p.finishRow(i, b.j, row)
		}
	}
}

// NewPacked makes room for op(B) of k x n values, all of them 0 until Repack.
func (t *AMX) NewPacked(k, n int) *Packed {
	p := &Packed{K: k, N: n, by: t, columns: (n + amxPair - 1) / amxPair * amxPair}
	step := amxK(k)
	p.words = make([]float32, p.amxAt(k/step*step, 0, 0)+amxSteps(k%step)*tileRows*p.columns)
	return p
}

// Panel returns the columns of a panel.
func (t *AMX) Panel() int { return amxPair }

// Repack packs columns from lo to hi of op(x), where op transposes if asked, into p, which t has made. lo is a multiple of
// Panel, and so is hi or it is N; threads may pack parts of their own.
func (t *AMX) Repack(p *Packed, x Matrix, trans bool, lo, hi int) {
	of := Product{B: x, TransB: trans, K: p.K}
	step := amxK(p.K)
	for k := 0; k < p.K; k += step {
		b := amxPart{p: &of, j: lo, nb: hi - lo, k: k, kb: min(step, p.K-k)}
		b.steps = amxSteps(b.kb)
		t.packB(p.words[p.amxAt(k, b.steps, lo):], &b)
	}
}

// amxAt returns the first word of the tiles of column j in the block of values from k on, which has so many tiles along k.
func (p *Packed) amxAt(k, steps, j int) int { return amxSteps(k)*tileRows*p.columns + j*steps*tileRows }

// packed returns what p was packed as, nil where it has other panels or begins within one.
func (t *AMX) packed(p *Product) *Packed {
	if x := p.Packed; x != nil && x.by == t && p.PackedFrom%amxPair == 0 {
		return x
	}
	return nil
}
