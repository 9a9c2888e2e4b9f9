package kernel

import (
	"sync"
	"unsafe"
)

// tiledAttention does the products of attention by the tiles of the built-in product.
// What is read often is packed once a sequence, and the rest once a block; the rows of
// scores are read in place, as they are or transposed.
type tiledAttention struct {
	width, stride int
	// float has tiles of float32; tiles has those for blocks of more than a few
	// queries, of bfloat16 where the engine wants it.
	float, tiles *tiledGemm
	rounded      bool // tiles is of float32, but operands are rounded to bfloat16
	keys         attentionKeys
	// Panels of the sequence, made when they are needed: of K and V, and transposed.
	panels [2][2][]float32
	packed [2][2]bool
	memory []float32 // of panels to come
	a, b   []float32 // packed operands of a product
	sizes  AttentionSizes
	queue  aheadQueue
}

// of returns the fastest products.
func (p AttentionProducts) of(s AttentionSizes) attentionProducts {
	if p.Plain || !hasAVX2FMA || s.Width > blockN {
		return newPlainAttention(s, p.BF16)
	}
	t := &tiledAttention{width: s.Width, stride: scoreStride(s.Keys), sizes: s, float: p.Float}
	t.queue.lines = (s.Width*wordSize + cacheLine - 1) / cacheLine
	if t.float == nil {
		t.float = sharedTiles()
	}
	t.tiles = t.float
	switch {
	case !p.BF16:
	case p.Tiles != nil:
		t.tiles = p.Tiles
	default:
		t.rounded = true
	}
	return t
}

// shared holds the tiles of float32 for engines whose backend has its own product.
var shared struct {
	sync.Mutex
	of map[string]*tiledGemm
}

// sharedTiles returns the built-in product for the instruction set in use.
func sharedTiles() *tiledGemm {
	shared.Lock()
	defer shared.Unlock()
	if shared.of == nil {
		shared.of = map[string]*tiledGemm{}
	}
	t := shared.of[cpuLevel()]
	if t == nil {
		t = newTiled()
		shared.of[cpuLevel()] = t
	}
	return t
}

func (t *tiledAttention) use(memory []float32) {
	n := pad(t.sizes.Queries, 2) * max(pad(t.width, maxPanel), t.stride)
	t.a, t.b, t.memory = memory[:n], memory[n:2*n], memory[2*n:]
	t.panels = [2][2][]float32{}
}

func (t *tiledAttention) ahead(x []float32, ld, rows int) { t.queue.add(x, ld, rows) }

func (t *tiledAttention) begin(products int) { t.queue.products = products }

func (t *tiledAttention) setKeys(keys attentionKeys) {
	t.keys = keys
	t.packed = [2][2]bool{}
}

// lastKeys is the number of keys after whole vectors up to which products with them are
// sums along E, which are of float32 always.
const lastKeys = 3

// tileKeys returns how many keys the tiles of scores take: for one key a tile takes as
// long as for a vector of them.
func (t *tiledAttention) tileKeys() int {
	if last := t.keys.n % t.tiles.lanes; last <= lastKeys && t.keys.n > last {
		return t.keys.n - last
	}
	return t.keys.n
}

// isFew reports whether a product reads its right operand in place: a tile without
// masks would read beyond rows that end within a vector.
func (t *tiledAttention) isFew(rows int) bool {
	return rows <= fewQueries && (t.float.masked || t.width%t.float.lanes == 0)
}

func (t *tiledAttention) scores(s, x []float32, ldx, rows int, alpha float32, of keyOrValue) {
	if rows <= fewQueries {
		for i := range rows {
			dotRows(s[i*t.stride:], 1, t.keys.of[of], t.keys.ld, t.keys.n, x[i*ldx:][:t.width], alpha)
		}
		return
	}
	n := t.tileKeys()
	for j := n; j < t.keys.n; j++ {
		dotRows(s[j:], t.stride, x, ldx, rows, t.keys.of[of][j*t.keys.ld:][:t.width], alpha)
	}
	w := t.tiles.work.take()
	p := attentionProduct{m: rows, n: n, terms: t.tiles.terms(t.width), alpha: alpha, c: s, ldc: t.stride, padded: true}
	p.a = t.rowsOf(x, ldx, rows, t.width)
	p.b = t.panelsOf(w, of, true)
	t.tiles.attentionProduct(w, &p, &t.queue)
	t.tiles.work.give(w)
}

func (t *tiledAttention) weigh(y []float32, ldy int, s []float32, rows int, alpha float32, of keyOrValue) {
	p := attentionProduct{m: rows, n: t.width, terms: t.keys.n, alpha: alpha, c: y, ldc: ldy}
	if t.isFew(rows) {
		t.few(&p, rowsOperand{at: unsafe.Pointer(&s[0]), row: t.stride * wordSize, k: wordSize}, t.keys.of[of], t.keys.ld)
		return
	}
	w := t.tiles.work.take()
	p.terms = t.tiles.terms(t.keys.n)
	p.a = t.rowsOf(s, t.stride, rows, t.keys.n)
	p.b = t.panelsOf(w, of, false)
	t.tiles.attentionProduct(w, &p, &t.queue)
	t.tiles.work.give(w)
}

func (t *tiledAttention) spread(y []float32, ldy int, s, x []float32, ldx, rows int, alpha float32, add bool) {
	p := attentionProduct{m: t.keys.n, n: t.width, terms: rows, alpha: alpha, add: add, c: y, ldc: ldy}
	if t.isFew(rows) {
		t.few(&p, rowsOperand{at: unsafe.Pointer(&s[0]), row: wordSize, k: t.stride * wordSize}, x, ldx)
		return
	}
	w := t.tiles.work.take()
	p.terms = t.tiles.terms(rows)
	p.a = t.columnsOf(w, s, rows)
	p.b = t.pack(w, t.b, x, ldx, rows)
	t.tiles.attentionProduct(w, &p, &t.queue)
	t.tiles.work.give(w)
}

// few computes a product of float32 for few queries, with b as it lies in memory: rows
// of E values.
func (t *tiledAttention) few(p *attentionProduct, a rowsOperand, b []float32, ldb int) {
	f := t.float
	w := f.work.take()
	_, height := f.heights(p.m)
	a.tile = height * a.row
	p.a, p.b = a, panelsOperand{at: unsafe.Pointer(&b[0]), k: ldb * wordSize, panel: 2 * f.lanes * wordSize}
	f.attentionProduct(w, p, &t.queue)
	f.work.give(w)
}
