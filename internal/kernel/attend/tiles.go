//go:build amd64 || arm64

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
	tiles         *gemm.Tiled // of float32
	rounded       bool        // operands are rounded to bfloat16, but for a few queries
	keys          sequence
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
	if p.Plain || !cpu.HasVectors || s.Width > gemm.BlockN {
		return newPlainAttention(s, p.BF16)
	}
	t := &tiledAttention{width: s.Width, stride: scoreStride(s.Keys), sizes: s, tiles: p.Float, rounded: p.BF16}
	t.queue.Lines = (s.Width*gemm.WordSize + gemm.CacheLine - 1) / gemm.CacheLine
	if t.tiles == nil {
		t.tiles = gemm.Shared()
	}
	return t
}

func (t *tiledAttention) use(memory []float32) {
	n := t.sizes.Queries * max(pad(t.width, gemm.MaxPanel), t.stride)
	t.a, t.b, t.memory = memory[:n], memory[n:2*n], memory[2*n:]
	t.panels = [2][2][]float32{}
}

func (t *tiledAttention) ahead(x gemm.Matrix, rows int) { t.queue.Add(x, rows) }

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
	return rows <= fewQueries && (t.tiles.Masked || t.width%t.tiles.Lanes == 0)
}

func (t *tiledAttention) scores(s []float32, x gemm.Matrix, rows int, alpha float32, of keyOrValue) {
	keys := t.keys.of[of]
	if rows <= fewQueries {
		for i := range rows {
			vector.DotRows(s[i*t.stride:], 1, keys.F32, keys.LD, t.keys.n, x.F32[i*x.LD:][:t.width], alpha)
		}
		return
	}
	n := t.tileKeys()
	for j := n; j < t.keys.n; j++ {
		vector.DotRows(s[j:], t.stride, x.F32, x.LD, rows, keys.F32[j*keys.LD:][:t.width], alpha)
	}
	w := t.tiles.Work.Take()
	p := gemm.PanelProduct{M: rows, N: n, Terms: t.width, Alpha: alpha, C: s, LDC: t.stride, Padded: true}
	p.A = t.rowsOf(x, rows, t.width)
	p.B = t.panelsOf(w, of, true)
	t.tiles.MultiplyPanels(w, &p, &t.queue)
	t.tiles.Work.Give(w)
}

func (t *tiledAttention) weigh(y gemm.Matrix, s []float32, rows int, alpha float32, of keyOrValue) {
	p := gemm.PanelProduct{M: rows, N: t.width, Terms: t.keys.n, Alpha: alpha, C: y.F32, LDC: y.LD}
	if t.isFew(rows) {
		t.few(&p, gemm.RowsOperand{At: unsafe.Pointer(&s[0]), Row: t.stride * gemm.WordSize, K: gemm.WordSize},
			t.keys.of[of])
		return
	}
	w := t.tiles.Work.Take()
	p.A = t.rowsOf(gemm.Matrix{F32: s, LD: t.stride}, rows, t.keys.n)
	p.B = t.panelsOf(w, of, false)
	t.tiles.MultiplyPanels(w, &p, &t.queue)
	t.tiles.Work.Give(w)
}

func (t *tiledAttention) spread(y []float32, ldy int, s []float32, x gemm.Matrix, rows int, alpha float32, add bool) {
	p := gemm.PanelProduct{M: t.keys.n, N: t.width, Terms: rows, Alpha: alpha, Add: add, C: y, LDC: ldy}
	if t.isFew(rows) {
		t.few(&p, gemm.RowsOperand{At: unsafe.Pointer(&s[0]), Row: gemm.WordSize, K: t.stride * gemm.WordSize}, x)
		return
	}
	w := t.tiles.Work.Take()
	p.A = t.columnsOf(s, rows)
	p.B = t.pack(w, t.b, x, rows)
	t.tiles.MultiplyPanels(w, &p, &t.queue)
	t.tiles.Work.Give(w)
}

// few computes a product for few queries, with b as it lies in memory: rows
// of E values.
func (t *tiledAttention) few(p *gemm.PanelProduct, a gemm.RowsOperand, b gemm.Matrix) {
	w := t.tiles.Work.Take()
	_, height := t.tiles.Heights(p.M)
	a.Tile = height * a.Row
	p.A, p.B = a, gemm.PanelsOperand{At: unsafe.Pointer(&b.F32[0]), K: b.LD * gemm.WordSize,
		Panel: 2 * t.tiles.Lanes * gemm.WordSize}
	t.tiles.MultiplyPanels(w, p, &t.queue)
	t.tiles.Work.Give(w)
}
