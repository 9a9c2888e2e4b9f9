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
	Work freelist.List[AMXWork]
}

const (
	tileRows   = 16   // of a tile; also the words of one
	tileValues = 32   // bfloat16 values of a row
	tileWords  = 256  // of a tile
	amxTile    = 1024 // bytes of one
	amxPair    = 32   // rows or columns of two tiles
	halfSize   = 2    // bytes of a bfloat16
	amxTerms   = 1536 // most values along k of a block
	amxSub     = 20   // most tiles along k for which two tiles of rows stay in the level-1 cache: 40 of 48 KiB

	amxBlock = 288 << 10     // words of a block of B: little more than half of a level-2 cache of 2 MiB
	amxWidth = 1024          // most columns of one
	amxStrip = amxWidth + 16 // values of a row of a strip: rows that lie a multiple of 4 KiB apart share few sets of the level-1 cache
	amxGroup = 1536 << 10    // words of a group of A
	amxRows  = 2048          // most rows of a group of A
	amxSmall = 128           // rows of a group of a transposed A, which lie side by side in memory
)

// amxArgs is what the functions on tiles read; the generator in ../gen/gemm knows the offsets.
type amxArgs struct {
	config  unsafe.Pointer // 0
	a       unsafe.Pointer // 8
	aRow    int            // 16: from one row of a tile to the next, in bytes
	aTile   int            // 24: from one tile of rows to the next
	aStep   int            // 32: from one tile along k to the next
	aPanel  int            // 40: from the rows of a panel to those of the next one
	steps   int            // 48: tiles along k, at least 1
	b       unsafe.Pointer // 56
	bRow    int            // 64
	bTile   int            // 72: from one tile of columns to the next
	bStep   int            // 80
	bPanel  int            // 88
	sums    unsafe.Pointer // 96
	row     int            // 104: of the sums, in bytes
	add     int            // 112: not 0 to add to the sums
	panels  int            // 120: at least 1; counted down
	step    int            // 128: from the sums of a panel to those of the next
	end     int            // 136: what is made of the sums
	out     unsafe.Pointer // 144: that
	outRow  int            // 152
	outStep int            // 160: from that of a panel to that of the next
	rows    int            // 168
	bias    unsafe.Pointer // 176: added to each row, or nil
	mask    uint64         // 184: one bit for each column
	alpha   float32        // 192: what the sums are multiplied by
}

// What is made of the sums of a panel.
const (
	endSums   = iota // nothing
	endSet           // float32
	endAdd           // added to float32
	endHalves        // bfloat16
)

// tileConfig is the operand of LDTILECFG: the shapes of the eight tiles.
type tileConfig struct {
	palette, start byte
	_              [14]byte
	bytes          [16]uint16 // of a row
	rows           [16]byte
}

// AMXWork is the memory of one product in progress.
type AMXWork struct {
	block  []float32 // of B
	group  []float32 // of A
	strip  []float32 // of C
	config tileConfig
	args   amxArgs
	rows   [tileValues * amxRows]uint16 // the last rows of a transposed A
}

// NewAMX returns the built-in product by AMX, nil where the processor or the system has none.
func NewAMX() *AMX {
	if !cpu.HasAMX {
		return nil
	}
	t := &AMX{}
	t.Work.Make = func() *AMXWork {
		return &AMXWork{block: make([]float32, amxBlock), group: make([]float32, amxGroup), strip: make([]float32, amxPair*amxStrip)}
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
	w := t.Work.Take()
	stepK, packed := amxK(p.K), t.packed(p)
	depth := amxSteps(min(stepK, p.K)) * tileRows // words of a row or column of a block
	stepN := parts(p.N, min(amxWidth, amxBlock/depth/amxPair*amxPair), amxPair)
	for k := 0; k < p.K; k += stepK {
		b := amxPart{p: p, k: k, kb: min(stepK, p.K-k), add: k > 0 || p.Beta != 0}
		b.steps, b.last = amxSteps(b.kb), k+b.kb == p.K
		if p.TransA && stepN < p.N {
			t.rowsFirst(w, &b, parts(p.M, min(amxRows, amxGroup/depth/amxPair*amxPair), amxPair), stepN, packed)
		} else {
			t.columnsFirst(w, &b, stepN, packed)
		}
	}
	w.args = amxArgs{}
	t.Work.Give(w)
	if p.Follows() && !p.FinishesTiles() {
		p.Finish()
	}
}

// columnsFirst packs rows of A as they are needed, again for each block of B: two tiles of them stay in the level-1 cache, which makes up for the
// packing where they lie one after the other in memory.
func (t *AMX) columnsFirst(w *AMXWork, b *amxPart, stepN int, packed *Packed) {
	p, stepM := b.p, amxPair
	if p.TransA {
		stepM = amxSmall
	}
	for b.j = 0; b.j < p.N; b.j += stepN {
		b.nb = min(stepN, p.N-b.j)
		panels := t.panels(w, b, packed)
		for b.i = 0; b.i < p.M; b.i += stepM {
			b.mb = min(stepM, p.M-b.i)
			t.packA(w, b)
			t.group(w, b, panels)
		}
	}
}

// rowsFirst packs a group of A once, and all of B for each group.
func (t *AMX) rowsFirst(w *AMXWork, b *amxPart, stepM, stepN int, packed *Packed) {
	for b.i = 0; b.i < b.p.M; b.i += stepM {
		b.mb = min(stepM, b.p.M-b.i)
		t.packA(w, b)
		for b.j = 0; b.j < b.p.N; b.j += stepN {
			b.nb = min(stepN, b.p.N-b.j)
			t.group(w, b, t.panels(w, b, packed))
		}
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
			for i := range rest {
				copy(w.rows[i*amxRows:][:columns], src[i*stride:])
			}
			clear(w.rows[rest*amxRows:])
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

// packAlong packs rows of n values along k of x from value at on: each becomes a row of tiles. Rows that a last tile lacks hold anything,
// values beyond n are 0.
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
			pack((*byte)(unsafe.Pointer(&dst[(r/tileRows*steps+s)*tileWords])), x.first(at+r*x.LD+s*tileValues), x.LD*size, min(tileRows, rows-r), whole, last)
		}
	}
}

// packDown packs n rows along k of x from value at on, of so many columns: each column becomes one of tiles. Columns that a last tile lacks are 0, and
// so are pairs beyond n.
func packDown(dst []float32, x Matrix, at, n, columns int) {
	steps := amxSteps(n)
	block := steps * tileWords
	// Two tiles at a time: with more their places compete for few lines of the level-1 cache (0.07 ns a value with 16, 0.04 with two).
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

// group computes the rows and columns of b, two tiles of rows at a time.
func (t *AMX) group(w *AMXWork, b *amxPart, panels []float32) {
	sub, tile, end := parts(b.steps, amxSub, 1), b.steps*amxTile, b.end()
	for r := 0; r < b.mb; r += amxPair {
		rows := min(amxPair, b.mb-r)
		for s := 0; s < b.steps; s += sub {
			a := &w.args
			*a = amxArgs{
				config: unsafe.Pointer(&w.config), steps: min(sub, b.steps-s), add: s, alpha: b.p.Alpha,
				a: unsafe.Pointer(&w.group[(r/tileRows*b.steps+s)*tileWords]), aRow: CacheLine, aTile: tile, aStep: amxTile,
				bRow: CacheLine, bTile: tile, bStep: amxTile, bPanel: 2 * tile, row: amxStrip * WordSize, step: 2 * tileRows * WordSize,
			}
			if s+sub >= b.steps {
				b.finishes(a, r, end)
			}
			if end != endSums && sub >= b.steps {
				a.row, a.step = 2*tileRows*WordSize, 0 // one panel of sums is enough
			}
			t.products(w, rows, b.nb, panels[s*tileWords:])
		}
		if end == endSums {
			t.finish(w, b, r, rows)
		}
	}
}

// end says what the functions on tiles make of the sums of b.
func (b *amxPart) end() int {
	p := b.p
	switch {
	case b.last && p.Follows() && (p.Half == nil || p.ActivatedHalf != nil || p.Before.Length() > 0 || p.Activated != nil):
		return endSums
	case b.last && p.Half != nil && b.add:
		return endSums
	case b.last && p.Half != nil:
		return endHalves
	case b.add:
		return endAdd
	}
	return endSet
}

// finishes makes the functions on tiles finish the rows from r of the group on.
func (b *amxPart) finishes(a *amxArgs, r, end int) {
	p, at := b.p, (b.i+r)*b.p.LDC+b.j
	switch a.end = end; end {
	case endSums:
		return
	case endHalves:
		a.out, a.outRow, a.outStep = unsafe.Pointer(&p.Half[at]), p.LDC*halfSize, amxPair*halfSize
	default:
		a.out, a.outRow, a.outStep = unsafe.Pointer(&p.C[at]), p.LDC*WordSize, amxPair*WordSize
	}
	if b.last && p.Bias != nil {
		a.bias = unsafe.Pointer(&p.Bias[b.j])
	}
}

// products makes rows of nb columns of sums: whole panels, and then what is left in one.
func (t *AMX) products(w *AMXWork, rows, nb int, panels []float32) {
	whole := nb / amxPair
	if whole > 0 {
		t.multiply(w, rows, amxPair, whole, panels, w.strip)
	}
	if rest := nb % amxPair; rest > 0 {
		w.args.skip(whole)
		t.multiply(w, rows, rest, 1, panels[whole*w.args.bPanel/WordSize:], w.strip[whole*w.args.step/WordSize:])
	}
}

// skip goes on to what follows so many panels.
func (a *amxArgs) skip(panels int) {
	if a.bias != nil {
		a.bias = unsafe.Add(a.bias, panels*amxPair*WordSize)
	}
	if a.end != endSums {
		a.out = unsafe.Add(a.out, panels*a.outStep)
	}
}

// multiply makes rows of sums of panels of so many columns each.
func (t *AMX) multiply(w *AMXWork, rows, columns, n int, panels, sums []float32) {
	w.args.b, w.args.sums, w.args.panels = unsafe.Pointer(&panels[0]), unsafe.Pointer(&sums[0]), n
	w.run(rows, columns)
}

// run computes the panels of w.args, each of so many rows and columns.
func (w *AMXWork) run(rows, columns int) {
	w.config.set(rows, columns)
	w.args.rows, w.args.mask = rows, 1<<columns-1
	args := (*byte)(unsafe.Pointer(&w.args))
	switch {
	case rows > tileRows && columns > tileRows:
		amxProduct2x2(args)
	case rows > tileRows:
		amxProduct2x1(args)
	case columns > tileRows:
		amxProduct1x2(args)
	default:
		amxProduct1x1(args)
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

// finish takes the sums of rows from r of the group on to where they belong, with what follows the product where that is done in the cache.
func (t *AMX) finish(w *AMXWork, b *amxPart, r, rows int) {
	p := b.p
	follows := b.last && (p.Bias != nil || p.Follows()) && (!p.Follows() || p.FinishesTiles())
	for x := range rows {
		i := b.i + r + x
		c, sums := p.C[i*p.LDC+b.j:][:b.nb], w.strip[x*amxStrip:][:b.nb]
		row := c
		switch {
		case b.last && p.Half != nil: // C is not kept
			if row = sums; p.Alpha != 1 {
				vector.Scale(sums, p.Alpha, sums)
			}
			if b.add {
				vector.Add(sums, sums, c)
			}
		case b.add:
			vector.Axpy(c, p.Alpha, sums)
		case p.Alpha != 1:
			vector.Scale(c, p.Alpha, sums)
		default:
			copy(c, sums)
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
