package attend

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// tiledAttention does the products of attention by the tiles of the built-in product.
// What is read often is packed once a sequence, and the rest once a block; the rows of
// scores are read in place, as they are or transposed.
type tiledAttention struct {
	width, stride int
	// float has tiles of float32; tiles has those for blocks of more than a few
	// queries, of bfloat16 where the engine wants it.
	float, tiles *gemm.Tiled
	rounded      bool // tiles is of float32, but operands are rounded to bfloat16
	keys         sequence
	// Panels of the sequence, made when they are needed: of K and V, and transposed.
	panels [2][2][]float32
	packed [2][2]bool
	memory []float32 // of panels to come
	a, b   []float32 // packed operands of a product
	sizes  Sizes
	queue  gemm.Queue
}

// of returns the fastest products.
func (p Products) of(s Sizes) products {
	if p.Plain || !cpu.HasAVX2FMA || s.Width > gemm.BlockN {
		return newPlainAttention(s, p.BF16)
	}
	t := &tiledAttention{width: s.Width, stride: scoreStride(s.Keys), sizes: s, float: p.Float}
	t.queue.Lines = (s.Width*gemm.WordSize + gemm.CacheLine - 1) / gemm.CacheLine
	if t.float == nil {
		t.float = gemm.Shared()
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

func (t *tiledAttention) use(memory []float32) {
	n := pad(t.sizes.Queries, 2) * max(pad(t.width, gemm.MaxPanel), t.stride)
	t.a, t.b, t.memory = memory[:n], memory[n:2*n], memory[2*n:]
	t.panels = [2][2][]float32{}
}

func (t *tiledAttention) ahead(x []float32, ld, rows int) { t.queue.Add(x, ld, rows) }

func (t *tiledAttention) begin(products int) { t.queue.Products = products }

func (t *tiledAttention) setKeys(keys sequence) {
	t.keys = keys
	t.packed = [2][2]bool{}
}

// lastKeys is the number of keys after whole vectors up to which products with them are
// sums along E, which are of float32 always.
const lastKeys = 3

// tileKeys returns how many keys the tiles of scores take: for one key a tile takes as
// long as for a vector of them.
func (t *tiledAttention) tileKeys() int {
	if last := t.keys.n % t.tiles.Lanes; last <= lastKeys && t.keys.n > last {
		return t.keys.n - last
	}
	return t.keys.n
}

// isFew reports whether a product reads its right operand in place: a tile without
// masks would read beyond rows that end within a vector.
func (t *tiledAttention) isFew(rows int) bool {
	return rows <= fewQueries && (t.float.Masked || t.width%t.float.Lanes == 0)
}

func (t *tiledAttention) scores(s, x []float32, ldx, rows int, alpha float32, of keyOrValue) {
	if rows <= fewQueries {
		for i := range rows {
			vector.DotRows(s[i*t.stride:], 1, t.keys.of[of], t.keys.ld, t.keys.n, x[i*ldx:][:t.width], alpha)
		}
		return
	}
	n := t.tileKeys()
	for j := n; j < t.keys.n; j++ {
		vector.DotRows(s[j:], t.stride, x, ldx, rows, t.keys.of[of][j*t.keys.ld:][:t.width], alpha)
	}
	w := t.tiles.Work.Take()
	p := gemm.PanelProduct{M: rows, N: n, Terms: t.tiles.Terms(t.width), Alpha: alpha, C: s, LDC: t.stride, Padded: true}
	p.A = t.rowsOf(x, ldx, rows, t.width)
	p.B = t.panelsOf(w, of, true)
	t.tiles.MultiplyPanels(w, &p, &t.queue)
	t.tiles.Work.Give(w)
}

func (t *tiledAttention) weigh(y []float32, ldy int, s []float32, rows int, alpha float32, of keyOrValue) {
	p := gemm.PanelProduct{M: rows, N: t.width, Terms: t.keys.n, Alpha: alpha, C: y, LDC: ldy}
	if t.isFew(rows) {
		t.few(&p, gemm.RowsOperand{At: unsafe.Pointer(&s[0]), Row: t.stride * gemm.WordSize, K: gemm.WordSize}, t.keys.of[of], t.keys.ld)
		return
	}
	w := t.tiles.Work.Take()
	p.Terms = t.tiles.Terms(t.keys.n)
	p.A = t.rowsOf(s, t.stride, rows, t.keys.n)
	p.B = t.panelsOf(w, of, false)
	t.tiles.MultiplyPanels(w, &p, &t.queue)
	t.tiles.Work.Give(w)
}

func (t *tiledAttention) spread(y []float32, ldy int, s, x []float32, ldx, rows int, alpha float32, add bool) {
	p := gemm.PanelProduct{M: t.keys.n, N: t.width, Terms: rows, Alpha: alpha, Add: add, C: y, LDC: ldy}
	if t.isFew(rows) {
		t.few(&p, gemm.RowsOperand{At: unsafe.Pointer(&s[0]), Row: gemm.WordSize, K: t.stride * gemm.WordSize}, x, ldx)
		return
	}
	w := t.tiles.Work.Take()
	p.Terms = t.tiles.Terms(rows)
	p.A = t.columnsOf(w, s, rows)
	p.B = t.pack(w, t.b, x, ldx, rows)
	t.tiles.MultiplyPanels(w, &p, &t.queue)
	t.tiles.Work.Give(w)
}

// few computes a product of float32 for few queries, with b as it lies in memory: rows
// of E values.
func (t *tiledAttention) few(p *gemm.PanelProduct, a gemm.RowsOperand, b []float32, ldb int) {
	f := t.float
	w := f.Work.Take()
	_, height := f.Heights(p.M)
	a.Tile = height * a.Row
	p.A, p.B = a, gemm.PanelsOperand{At: unsafe.Pointer(&b[0]), K: ldb * gemm.WordSize, Panel: 2 * f.Lanes * gemm.WordSize}
	f.MultiplyPanels(w, p, &t.queue)
	f.Work.Give(w)
}
