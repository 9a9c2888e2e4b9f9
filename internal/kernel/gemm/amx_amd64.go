package gemm

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/freelist"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// AMX is the built-in product of bfloat16 by the tile registers of AMX. Its unit is a tile of 16 rows of 64 bytes: of A
// 16 rows of 32 values along k, of B 16 pairs of values along k and 16 columns, of C 16 x 16 sums in float32. Two tiles
// of A and two of B make four of C, which takes as many loads of tiles as products, the best that eight registers
// allow.
//
// Both operands are packed into tiles that lie one after the other along k. A block of B stays in the level-2 cache
// while all rows of A pass over it, two tiles of rows at a time, which stay in the level-1 cache: sums are cut along k
// so that there is room, and are kept in a strip meanwhile. What follows the product, but for activations, is computed
// from the sums of one panel while the tiles of the next one are on their way.
type AMX struct {
	Work freelist.List[AMXWork] // memory of products in progress: each takes one and gives it back
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

	amxBlock = 288 << 10 // words of a block of B: little more than half of a level-2 cache of 2 MiB
	amxWidth = 1024      // most columns of one
	// values of a row of a strip: rows that lie a multiple of 4 KiB apart share few sets of the level-1 cache
	amxStrip = amxWidth + 16
	amxGroup = 1536 << 10 // words of a group of A
	amxRows  = 2048       // most rows of a group of A
	amxSmall = 128        // rows of a group of a transposed A, which lie side by side in memory
)

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
		return &AMXWork{block: make([]float32, amxBlock), group: make([]float32, amxGroup),
			strip: make([]float32, amxPair*amxStrip)}
	}
	return t
}

// amxSteps returns the tiles along k of n values.
func amxSteps(n int) int { return (n + tileValues - 1) / tileValues }

// amxK returns the values along k of the blocks that k values are cut into.
func amxK(k int) int { return parts(k, amxTerms, tileValues) }

// Multiply computes p, with M, N, K >= 1 and Alpha other than 0. Every element of C sums its products in an order that
// depends on K alone.
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

// columnsFirst packs rows of A as they are needed, again for each block of B: two tiles of them stay in the level-1
// cache, which makes up for the packing where they lie one after the other in memory.
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

// group computes the rows and columns of b, two tiles of rows at a time.
func (t *AMX) group(w *AMXWork, b *amxPart, panels []float32) {
	sub, tile := parts(b.steps, amxSub, 1), b.steps*amxTile
	for r := 0; r < b.mb; r += amxPair {
		rows := min(amxPair, b.mb-r)
		end := b.end(rows)
		for s := 0; s < b.steps; s += sub {
			a := &w.args
			*a = amxArgs{
				config: unsafe.Pointer(&w.config), steps: min(sub, b.steps-s), add: s, alpha: b.p.Alpha,
				a: unsafe.Pointer(&w.group[(r/tileRows*b.steps+s)*tileWords]), aRow: CacheLine, aTile: tile,
				aStep: amxTile,
				bRow:  CacheLine, bTile: tile, bStep: amxTile, bPanel: 2 * tile, row: amxStrip * WordSize,
				step: 2 * tileRows * WordSize,
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

// end says what the functions on tiles make of the sums of so many rows of b.
func (b *amxPart) end(rows int) int {
	p := b.p
	switch {
	case b.last && p.Half != nil && p.ActivatedHalf != nil && p.Activation == vector.ByGELU &&
		p.Before.Length() == 0 && !b.add &&
		p.Alpha == 1 && rows == amxPair && b.nb%amxPair == 0:
		return endGELU
	case b.last && p.Follows() && (p.Half == nil || p.ActivatedHalf != nil || p.Before.Length() > 0 ||
		p.Activated != nil):
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
	case endHalves, endGELU:
		a.out, a.outRow, a.outStep = unsafe.Pointer(&p.Half[at]), p.LDC*halfSize, amxPair*halfSize
		if end == endGELU {
			a.activated = int(uintptr(unsafe.Pointer(&p.ActivatedHalf[at])) - uintptr(a.out))
		}
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

// finish takes the sums of rows from r of the group on to where they belong, with what follows the product where that
// is done in the cache.
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
