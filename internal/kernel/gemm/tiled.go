//go:build amd64 || arm64

package gemm

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/freelist"
)

//go:generate go run ../gen/gemm -out tiles_amd64.s -stubs tiles_amd64.go -pkg gemm

//go:generate go run ../gen/neon -tiles -out tiles_arm64.s -stubs tiles_arm64.go -pkg gemm

// Tiled is the built-in product, in float32 or in bfloat16. C is computed in
// tiles of up to maxRows rows and two vectors of columns, whose sums stay in
// registers. B is packed into panels as wide as a tile, a block of so many
// terms and columns as blocking says at a time, so that the block stays in the level-2 cache
// while all rows of A pass over it. A is packed a group of tiles at a time, since
// values a large stride apart compete for the same lines of the level-1 cache.
//
// A term is a word: a float32, or a pair of bfloat16 along k.
type Tiled struct {
	level   string
	BF16    bool
	Lanes   int  // float32 values in a vector
	maxRows int  // largest tile height
	Masked  bool // tiles may be narrower than a vector
	// tiles[r-1][v-1] computes a tile of r rows and v vectors.
	tiles [][2]func(*byte)
	blocking
	Work freelist.List[TileWork]
}

const (
	mostTerms = 384       // of a block along k
	BlockN    = 768       // most columns of a block
	mostBlock = 384 * 768 // words of the largest block
	groupRows = 112       // most rows of a group
	groupWide = 152       // most words of a term of a group: 19 tiles of 6 rows or 8 of 14, each in a vector
	MaxPanel  = 32        // columns of the widest panel
	maxTile   = 16        // no tile has more rows
	WordSize  = 4
)

// rowStride returns the words from one packed row of terms words to the next: rows that lie 512 bytes or a multiple
// apart share few sets of the level-1 cache, in which 14 of them find no room (a tile of 14 x 256 terms ran at 94 % of
// its speed).
func rowStride(terms int) int {
	const line = CacheLine / WordSize
	if terms%128 == 0 {
		return terms + line
	}
	return terms
}

// TileWork is the memory of one product in progress. It begins at a page, as large objects do, so what tiles read in
// whole vectors comes first: a vector that lies in two cache lines takes two loads.
type TileWork struct {
	panel  [mostBlock]float32
	group  [mostTerms * groupWide]float32
	edge   [maxTile * MaxPanel]float32
	strip  [maxTile * BlockN]float32 // C of a row of tiles, where only what follows the product is stored
	rows   [8 * 2 * mostTerms]uint16 // rows of a transposed B on their way into a panel
	args   tileArgs
	panels []float32 // of the block in progress: those in panel, or of a Packed
}

// Info implements gemm.Backend: the version is the instruction set in use.
func (t *Tiled) Info() (version, file string) { return t.level, "" }

// SGEMM implements gemm.Backend.
func (t *Tiled) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	t.Multiply(&Product{TransA: transA, TransB: transB, M: m, N: n, K: k, Alpha: alpha,
		A: Matrix{F32: a, LD: lda}, B: Matrix{F32: b, LD: ldb}, Beta: beta, C: c, LDC: ldc})
}

// parts returns the length of the parts when a length is cut into as few equal
// parts of at most most as possible, in multiples of unit.
func parts(length, most, unit int) int {
	n := (length + most - 1) / most
	return ((length+n-1)/n + unit - 1) / unit * unit
}

// Multiply computes p, with M, N, K >= 1 and Alpha other than 0. Every element of
// C sums its products in the order of k, in blocks that depend on K alone.
//
// A bias alone is added to each row of tiles while it is in the cache, which saves
// most of its cost (1 to 2 % of the product), and a result of bfloat16 is rounded there, of which
// C is stored only where a sum has several blocks of terms. The activation comes after the product, in
// one pass with the bias: taken row of tiles by row of tiles its second output
// drove the panels out of the cache, and the whole took 2 to 3 % longer
// (2080x1536x384, 3840x1536x384 and 2056x3072x768 over two threads).
func (t *Tiled) Multiply(p *Product) {
	if p.Beta != 0 && p.Beta != 1 {
		for i := range p.M {
			ScaleRow(p.C[i*p.LDC:i*p.LDC+p.N], p.Beta)
		}
	}
	w := t.Work.Take()
	w.args.alpha = p.Alpha
	stepK, columns, packed := t.blockK(p.K), t.columns, t.packed(p)
	if p.M <= t.rows {
		// Of the next block, all that is prefetched meanwhile.
		columns = min(columns, aheadBytes/WordSize/t.terms)
	}
	stepN := parts(p.N, columns, 2*t.Lanes)
	stepM := parts(p.M, t.rows, t.unit)
	if t.inSingles(p) {
		stepM = parts(p.M, t.maxRows, 1)
	}
	for j := 0; j < p.N; j += stepN {
		for k := 0; k < p.K; k += stepK {
			b := block{p: p, j: j, nb: min(stepN, p.N-j), k: k, kb: min(stepK, p.K-k), stepN: stepN, stepK: stepK}
			b.last, b.single = k+b.kb == p.K, t.inSingles(p)
			b.strip = p.Half != nil && b.kb == p.K && t.Masked
			b.terms, b.step, b.adds = t.Terms(b.kb), t.Terms(min(b.kb, t.stepK(p.K))), p.Beta != 0 || k > 0
			// Packing pays when many tiles pass over the panel, and where they end within a vector.
			b.direct = packed == nil && !t.BF16 && !p.TransB &&
				(p.M <= 4*t.maxRows || p.K*p.B.LD <= t.small && p.N%t.Lanes == 0)
			switch {
			case b.direct:
			case packed != nil:
				w.panels = packed.words[packed.at(k, b.terms, p.PackedFrom+j):]
			default:
				b.packs, w.panels = true, w.panel[:]
				t.packB(w, w.panels, &b)
			}
			for i := 0; i < p.M; i += stepM {
				t.group(w, &b, i, min(stepM, p.M-i))
			}
		}
	}
	w.args.a, w.args.b, w.args.c, w.panels = nil, nil, nil, nil
	w.args.next = 0
	t.Work.Give(w)
	if p.Follows() && !p.FinishesTiles() {
		p.Finish()
	}
}

// inSingles says whether the groups of p are single tiles.
func (t *Tiled) inSingles(p *Product) bool { return t.single && !p.TransA && p.M > t.rows }

// block is the part of a product with one packed block of B: columns j to j+nb
// and values k to k+kb.
type block struct {
	p             *Product
	j, nb, k, kb  int
	stepN, stepK  int  // of the largest blocks
	terms, step   int  // words along k, and those that are summed before C is written
	adds          bool // to what C has
	direct        bool // B is read in place
	inPlace       bool // so is A
	packs         bool // B is packed block by block
	single        bool // groups of A are single tiles
	stride        int  // words from one row of the packed group to the next
	last          bool // of its columns
	strip         bool // C is the strip of TileWork
	height, mb, i int  // rows of a tile and of the group, first row of the group
	ahead         ahead
	next          stream
}

// group computes rows i to i+mb and the columns of b.
func (t *Tiled) group(w *TileWork, b *block, i, mb int) {
	tiles := (mb + t.maxRows - 1) / t.maxRows
	// Tiles of nearly the same height: a last one of one row would be slow.
	b.i, b.mb, b.height = i, mb, (mb+tiles-1)/tiles
	width := 2 * t.Lanes
	panels := (b.nb + width - 1) / width
	b.inPlace = t.readInPlace(b)
	if !b.inPlace {
		b.stride = rowStride(b.terms)
		t.packA(w, b)
	}
	switch {
	case b.single:
		b.askForGroup(tiles * panels)
	case !b.inPlace || t.rowsInPlace && mb == b.p.M:
		b.lookAhead(tiles * panels)
	}
	for r := 0; r < mb; r += b.height {
		t.row(w, b, r)
		t.finish(w, b, r, min(b.height, mb-r))
	}
}

// readInPlace says whether the group of b is read where it lies. A copy pays when several panels pass over it, unless
// it is one tile that finds room in the level-1 cache as it lies: in 8 of 12 ways, so that a panel of B passes by.
func (t *Tiled) readInPlace(b *block) bool {
	switch {
	case t.BF16:
		return false
	case b.nb <= 4*t.Lanes, t.rowsInPlace && !b.p.TransA, b.p.K*b.p.A.LD <= t.small:
		return true
	case !b.single:
		return false
	}
	const way, ways = 4096, 8 // bytes of a way
	row := b.p.A.LD * WordSize
	between := min(max(row&-row, CacheLine), way) // bytes from where a row begins in a way to where the next one may
	begins := way / between
	return (b.mb+begins-1)/begins*((b.kb*WordSize+between-1)/between) <= ways
}

// finish does what follows the product for so many rows from r of the group on, where that is done in the cache.
func (t *Tiled) finish(w *TileWork, b *block, r, rows int) {
	p := b.p
	if !b.last || p.Bias == nil && !p.Follows() || p.Follows() && !p.FinishesTiles() {
		return
	}
	c, ldc := t.rowsOfC(w, b, b.i+r)
	for x := range rows {
		p.finishRow(b.i+r+x, b.j, c[x*ldc:][:b.nb])
	}
}

// rowsOfC returns where the columns of b of row i of C are made, and their stride.
func (t *Tiled) rowsOfC(w *TileWork, b *block, i int) ([]float32, int) {
	if b.strip {
		return w.strip[:], BlockN
	}
	return b.p.C[i*b.p.LDC+b.j:], b.p.LDC
}

// rowsAt points w.args to the rows of A of the tile that begins at row r of the group.
func (t *Tiled) rowsAt(w *TileWork, b *block, r int) {
	p, i := b.p, b.i
	switch {
	case b.inPlace && p.TransA:
		w.args.a, w.args.aRow, w.args.aK = unsafe.Pointer(&p.A.F32[b.k*p.A.LD+i+r]), WordSize, p.A.LD*WordSize
	case b.inPlace:
		w.args.a, w.args.aRow, w.args.aK = unsafe.Pointer(&p.A.F32[(i+r)*p.A.LD+b.k]), p.A.LD*WordSize, WordSize
	case p.TransA:
		w.args.a, w.args.aRow, w.args.aK = unsafe.Pointer(&w.group[r/b.height*b.terms*t.Lanes]), WordSize,
			t.Lanes*WordSize
	default:
		w.args.a, w.args.aRow, w.args.aK = unsafe.Pointer(&w.group[r*b.stride]), b.stride*WordSize, WordSize
	}
}

// row computes the tiles of the rows from r of the group on.
func (t *Tiled) row(w *TileWork, b *block, r int) {
	p := b.p
	t.rowsAt(w, b, r)
	rows := min(b.height, b.mb-r)
	width, first := 2*t.Lanes, w.args.a
	c, ldc := t.rowsOfC(w, b, b.i+r)
	w.args.bK, w.args.cRow = width*WordSize, ldc*WordSize
	for q := 0; q < b.nb; q += width {
		if b.single {
			b.ask(w)
		}
		for s := 0; s < b.terms; s += b.step {
			w.args.k, w.args.add = min(b.step, b.terms-s), 0
			if b.adds || s > 0 {
				w.args.add = 1
			}
			w.args.a = unsafe.Add(first, s*w.args.aK)
			if b.direct {
				w.args.b, w.args.bK = unsafe.Pointer(&p.B.F32[(b.k+s)*p.B.LD+b.j+q]), p.B.LD*WordSize
			} else {
				w.args.b = unsafe.Pointer(&w.panels[q*b.terms+s*width])
			}
			t.tile(w, b, rows, min(width, b.nb-q), q, s, c)
		}
		if !b.single {
			b.prefetch()
		}
	}
}

// tile computes the tile of so many rows and columns that begins at column q of the block, for the terms from s on.
func (t *Tiled) tile(w *TileWork, b *block, rows, cols, q, s int, c []float32) {
	vectors := (cols + t.Lanes - 1) / t.Lanes
	tile := t.tiles[rows-1][vectors-1]
	if !t.Masked && cols != vectors*t.Lanes {
		t.edge(w, b, tile, rows, cols, q, s, c)
		return
	}
	w.args.mask, w.args.c = 1<<cols-1, unsafe.Pointer(&c[q])
	tile((*byte)(unsafe.Pointer(&w.args)))
	if w.args.next != 0 {
		w.args.next += uintptr(w.args.k * WordSize)
	}
}

// edge computes a tile that ends within a vector, by way of w.edge.
func (t *Tiled) edge(w *TileWork, b *block, tile func(*byte), rows, cols, q, s int, c []float32) {
	if b.direct { // a whole vector would reach beyond the row
		copyRows(w.panel[:], b.p.B.F32[(b.k+s)*b.p.B.LD+b.j+q:], b.p.B.LD, w.args.k, cols, 2*t.Lanes)
		w.args.b, w.args.bK = unsafe.Pointer(&w.panel[0]), 2*t.Lanes*WordSize
	}
	add := w.args.add
	w.args.add = 0
	w.args.c, w.args.cRow = unsafe.Pointer(&w.edge[0]), MaxPanel*WordSize
	tile((*byte)(unsafe.Pointer(&w.args)))
	w.args.add, w.args.cRow = add, b.p.LDC*WordSize
	for i := range rows {
		from, to := w.edge[i*MaxPanel:][:cols], c[i*b.p.LDC+q:][:cols]
		if add == 0 {
			copy(to, from)
			continue
		}
		for x, v := range from {
			to[x] += v
		}
	}
}
