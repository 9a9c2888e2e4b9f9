//go:build amd64 || arm64

package gemm

import "unsafe"

// RowsOperand is a left operand of tiles: the value of row i and term k is i*row + k*k
// bytes from at within a tile of rows; tile bytes are from one tile to the next.
type RowsOperand struct {
	At           unsafe.Pointer
	Row, K, Tile int
}

// PanelsOperand is a right operand: panels of two vectors of columns, k bytes from one
// term to the next.
type PanelsOperand struct {
	At       unsafe.Pointer
	K, Panel int
}

// PanelProduct is a product of two such operands. C is m x n.
type PanelProduct struct {
	M, N, Terms int
	Alpha       float32
	Add         bool
	A           RowsOperand
	B           PanelsOperand
	C           []float32
	LDC         int
	Padded      bool // C has room for whole vectors in each row
}

// Terms returns the words of k values.
func (t *Tiled) Terms(k int) int {
	if t.BF16 {
		return (k + 1) / 2
	}
	return k
}

// Heights cuts m rows into tiles of nearly the same height.
func (t *Tiled) Heights(m int) (tiles, height int) {
	tiles = (m + t.maxRows - 1) / t.maxRows
	return tiles, (m + tiles - 1) / tiles
}

// MultiplyPanels computes p. Every element of C sums its products in the order of
// the terms.
func (t *Tiled) MultiplyPanels(w *TileWork, p *PanelProduct, queue *Queue) {
	args, width := &w.args, 2*t.Lanes
	args.k, args.alpha, args.add = p.Terms, p.Alpha, 0
	if p.Add {
		args.add = 1
	}
	args.aRow, args.aK, args.bK, args.cRow = p.A.Row, p.A.K, p.B.K, p.LDC*WordSize
	tiles, height := t.Heights(p.M)
	queue.product(tiles * ((p.N + width - 1) / width))
	// No divisions: small products have tiles that take no longer than one.
	tile := 0
	for i := 0; i < p.M; i += height {
		rows := min(height, p.M-i)
		tiles, c := &t.tiles[rows-1], p.C[i*p.LDC:]
		args.a = unsafe.Add(p.A.At, tile)
		tile += p.A.Tile
		panel := 0
		for q := 0; q < p.N; q += width {
			cols, vectors := min(width, p.N-q), 1
			if cols > t.Lanes {
				vectors = 2
			}
			args.b = unsafe.Add(p.B.At, panel)
			panel += p.B.Panel
			args.mask = 1<<cols - 1
			if !t.Masked && !p.Padded && cols != vectors*t.Lanes {
				t.panelEdge(w, p, tiles[vectors-1], rows, cols, c[q:])
			} else {
				args.c = unsafe.Pointer(&c[q])
				tiles[vectors-1]((*byte)(unsafe.Pointer(args)))
			}
			if queue.share > 0 {
				queue.tile()
			}
		}
	}
	args.a, args.b, args.c = nil, nil, nil
}

// panelEdge computes a tile that ends within a vector, by way of w.edge.
func (t *Tiled) panelEdge(w *TileWork, p *PanelProduct, tile func(*byte), rows, cols int, c []float32) {
	args := &w.args
	add, cRow := args.add, args.cRow
	args.add, args.c, args.cRow = 0, unsafe.Pointer(&w.edge[0]), MaxPanel*WordSize
	tile((*byte)(unsafe.Pointer(args)))
	args.add, args.cRow = add, cRow
	for i := range rows {
		from, to := w.edge[i*MaxPanel:][:cols], c[i*p.LDC:][:cols]
		if add == 0 {
			copy(to, from)
			continue
		}
		for x, v := range from {
			to[x] += v
		}
	}
}

// Panels describes packed panels of n rows of width values.
func (t *Tiled) Panels(dst []float32, width, n int, transposed bool) PanelsOperand {
	k := n
	if transposed {
		k = width
	}
	row := 2 * t.Lanes * WordSize
	return PanelsOperand{At: unsafe.Pointer(&dst[0]), K: row, Panel: t.Terms(k) * row}
}

// PackTransposed packs n rows of width values of x as the columns of panels.
func (t *Tiled) PackTransposed(w *TileWork, dst, x []float32, ld, n, width int) {
	panel, terms := 2*t.Lanes, t.Terms(width)
	for q := 0; q < n; q += 8 {
		rows := min(8, n-q)
		// A last group of less than 8 begins earlier where the panel does, too, since
		// only whole groups are transposed by vectors.
		if rows < 8 && q%panel >= 8 {
			q, rows = n-8, 8
		}
		t.packTransposed(w, dst[q/panel*panel*terms+q%panel:], Matrix{F32: x, LD: ld}, q*ld, rows, width)
	}
}
