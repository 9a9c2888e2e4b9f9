//go:build amd64 || arm64

package attend

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// rowsOf returns m rows of n values of x as a left operand.
func (t *tiledAttention) rowsOf(x gemm.Matrix, m, n int) gemm.RowsOperand {
	_, height := t.tiles.Heights(m)
	a := gemm.RowsOperand{At: unsafe.Pointer(&x.F32[0]), Row: x.LD * gemm.WordSize, K: gemm.WordSize}
	if t.rounded {
		roundRows(t.a, x.F32, x.LD, m, n, n)
		a.At, a.Row = unsafe.Pointer(&t.a[0]), n*gemm.WordSize
	}
	a.Tile = height * a.Row
	return a
}

// columnsOf returns the transpose of rows of scores as a left operand.
func (t *tiledAttention) columnsOf(s []float32, rows int) gemm.RowsOperand {
	_, height := t.tiles.Heights(t.keys.n)
	a := gemm.RowsOperand{At: unsafe.Pointer(&s[0]), Row: gemm.WordSize, K: t.stride * gemm.WordSize,
		Tile: height * gemm.WordSize}
	if t.rounded {
		roundRows(t.a, s, t.stride, rows, t.keys.n, t.stride)
		a.At = unsafe.Pointer(&t.a[0])
	}
	return a
}

// panelsOf returns K or V as a right operand, transposed if asked, and packs it the
// first time.
func (t *tiledAttention) panelsOf(w *gemm.TileWork, of keyOrValue, transposed bool) gemm.PanelsOperand {
	i := 0
	if transposed {
		i = 1
	}
	dst := t.panels[of][i]
	if dst == nil {
		n := pad(t.sizes.Keys, gemm.MaxPanel) * pad(t.width, gemm.MaxPanel)
		dst, t.memory = t.memory[:n:n], t.memory[n:]
		t.panels[of][i] = dst
	}
	if t.packed[of][i] {
		return t.tiles.Panels(dst, t.width, t.keys.n, transposed)
	}
	t.packed[of][i] = true
	if !transposed {
		return t.pack(w, dst, t.keys.of[of], t.keys.n)
	}
	n := t.tileKeys()
	t.tiles.PackTransposed(w, dst, t.keys.of[of].F32, t.keys.of[of].LD, n, t.width)
	t.roundPanels(dst, t.width*pad(n, 2*t.tiles.Lanes))
	return t.tiles.Panels(dst, t.width, t.keys.n, transposed)
}

// pack packs n rows of E values of x into panels.
func (t *tiledAttention) pack(w *gemm.TileWork, dst []float32, x gemm.Matrix, n int) gemm.PanelsOperand {
	width := 2 * t.tiles.Lanes
	t.tiles.PackRows(dst, width, width*n, x, 0, n, t.width, width)
	t.roundPanels(dst, n*pad(t.width, width))
	return t.tiles.Panels(dst, t.width, n, false)
}

// roundPanels rounds n packed values to bfloat16 where the tiles do not.
func (t *tiledAttention) roundPanels(x []float32, n int) {
	if t.rounded {
		vector.RoundBF16(x[:n], x[:n])
	}
}
