package kernel

import "unsafe"

// rowsOperand is a left operand of tiles: the value of row i and term k is i*row + k*k
// bytes from at within a tile of rows; tile bytes are from one tile to the next.
type rowsOperand struct {
	at           unsafe.Pointer
	row, k, tile int
}

// panelsOperand is a right operand: panels of two vectors of columns, k bytes from one
// term to the next.
type panelsOperand struct {
	at       unsafe.Pointer
	k, panel int
}

// attentionProduct is a product of two such operands. C is m x n.
type attentionProduct struct {
	m, n, terms int
	alpha       float32
	add         bool
	a           rowsOperand
	b           panelsOperand
	c           []float32
	ldc         int
	padded      bool // C has room for whole vectors in each row
}

// terms returns the words of k values.
func (t *tiledGemm) terms(k int) int {
	if t.bf16 {
		return (k + 1) / 2
	}
	return k
}

// heights cuts m rows into tiles of nearly the same height.
func (t *tiledGemm) heights(m int) (tiles, height int) {
	tiles = (m + t.maxRows - 1) / t.maxRows
	return tiles, (m + tiles - 1) / tiles
}

// attentionProduct computes p. Every element of C sums its products in the order of
// the terms.
func (t *tiledGemm) attentionProduct(w *tileWork, p *attentionProduct, queue *aheadQueue) {
	args, width := &w.args, 2*t.lanes
	args.k, args.alpha, args.add = p.terms, p.alpha, 0
	if p.add {
		args.add = 1
	}
	args.aRow, args.aK, args.bK, args.cRow = p.a.row, p.a.k, p.b.k, p.ldc*wordSize
	tiles, height := t.heights(p.m)
	queue.product(tiles * ((p.n + width - 1) / width))
	for i := 0; i < p.m; i += height {
		rows := min(height, p.m-i)
		tiles, c := &t.tiles[rows-1], p.c[i*p.ldc:]
		args.a = unsafe.Add(p.a.at, i/height*p.a.tile)
		for q := 0; q < p.n; q += width {
			cols := min(width, p.n-q)
			vectors := (cols + t.lanes - 1) / t.lanes
			args.b = unsafe.Add(p.b.at, q/width*p.b.panel)
			args.mask = 1<<cols - 1
			if !t.masked && !p.padded && cols != vectors*t.lanes {
				t.attentionEdge(w, p, tiles[vectors-1], rows, cols, c[q:])
			} else {
				args.c = unsafe.Pointer(&c[q])
				tiles[vectors-1]((*byte)(unsafe.Pointer(args)))
			}
			queue.tile()
		}
	}
	args.a, args.b, args.c = nil, nil, nil
}

// attentionEdge computes a tile that ends within a vector, by way of w.edge.
func (t *tiledGemm) attentionEdge(w *tileWork, p *attentionProduct, tile func(*byte), rows, cols int, c []float32) {
	args := &w.args
	add, cRow := args.add, args.cRow
	args.add, args.c, args.cRow = 0, unsafe.Pointer(&w.edge[0]), maxPanel*wordSize
	tile((*byte)(unsafe.Pointer(args)))
	args.add, args.cRow = add, cRow
	for i := range rows {
		from, to := w.edge[i*maxPanel:][:cols], c[i*p.ldc:][:cols]
		if add == 0 {
			copy(to, from)
			continue
		}
		for x, v := range from {
			to[x] += v
		}
	}
}

// rowsOf returns m rows of n values of x as a left operand.
func (t *tiledAttention) rowsOf(x []float32, ld, m, n int) rowsOperand {
	_, height := t.tiles.heights(m)
	a := rowsOperand{at: unsafe.Pointer(&x[0]), row: ld * wordSize, k: wordSize}
	switch {
	case t.tiles.bf16:
		packHalves(asHalves(t.a), Matrix{F32: x, LD: ld}, 0, m, n)
		a.at, a.row = unsafe.Pointer(&t.a[0]), t.tiles.terms(n)*wordSize
	case t.rounded:
		roundRows(t.a, x, ld, m, n, n)
		a.at, a.row = unsafe.Pointer(&t.a[0]), n*wordSize
	}
	a.tile = height * a.row
	return a
}

// columnsOf returns the transpose of rows of scores as a left operand.
func (t *tiledAttention) columnsOf(w *tileWork, s []float32, rows int) rowsOperand {
	_, height := t.tiles.heights(t.keys.n)
	a := rowsOperand{at: unsafe.Pointer(&s[0]), row: wordSize, k: t.stride * wordSize, tile: height * wordSize}
	switch {
	case t.tiles.bf16:
		even := pad(rows, 2)
		if even > rows {
			clear(s[rows*t.stride:][:t.keys.n])
		}
		lanes, block := t.tiles.lanes, even/2*t.tiles.lanes
		t.tiles.packRows(w, t.a, lanes, block, Matrix{F32: s, LD: t.stride}, 0, even, t.keys.n, height)
		a.at, a.k, a.tile = unsafe.Pointer(&t.a[0]), lanes*wordSize, block*wordSize
	case t.rounded:
		roundRows(t.a, s, t.stride, rows, t.keys.n, t.stride)
		a.at = unsafe.Pointer(&t.a[0])
	}
	return a
}

// panelsOf returns K or V as a right operand, transposed if asked, and packs it the
// first time.
func (t *tiledAttention) panelsOf(w *tileWork, of keyOrValue, transposed bool) panelsOperand {
	i := 0
	if transposed {
		i = 1
	}
	dst := t.panels[of][i]
	if dst == nil {
		n := pad(t.sizes.Keys, maxPanel) * pad(t.width, maxPanel)
		dst, t.memory = t.memory[:n:n], t.memory[n:]
		t.panels[of][i] = dst
	}
	if t.packed[of][i] {
		return t.tiles.panels(dst, t.width, t.keys.n, transposed)
	}
	t.packed[of][i] = true
	if !transposed {
		return t.pack(w, dst, t.keys.of[of], t.keys.ld, t.keys.n)
	}
	n := t.tileKeys()
	t.tiles.packAttentionTransposed(w, dst, t.keys.of[of], t.keys.ld, n, t.width)
	t.roundPanels(dst, t.width*pad(n, 2*t.tiles.lanes))
	return t.tiles.panels(dst, t.width, t.keys.n, transposed)
}

// panels describes packed panels of n rows of width values.
func (t *tiledGemm) panels(dst []float32, width, n int, transposed bool) panelsOperand {
	k := n
	if transposed {
		k = width
	}
	row := 2 * t.lanes * wordSize
	return panelsOperand{at: unsafe.Pointer(&dst[0]), k: row, panel: t.terms(k) * row}
}

// pack packs n rows of E values of x into panels.
func (t *tiledAttention) pack(w *tileWork, dst, x []float32, ld, n int) panelsOperand {
	width := 2 * t.tiles.lanes
	t.tiles.packRows(w, dst, width, width*t.tiles.terms(n), Matrix{F32: x, LD: ld}, 0, n, t.width, width)
	t.roundPanels(dst, n*pad(t.width, width))
	return t.tiles.panels(dst, t.width, n, false)
}

// roundPanels rounds n packed values to bfloat16 where the tiles do not.
func (t *tiledAttention) roundPanels(x []float32, n int) {
	if t.rounded {
		roundBF16(x[:n], x[:n])
	}
}

// packAttentionTransposed packs n rows of width values of x as the columns of panels.
func (t *tiledGemm) packAttentionTransposed(w *tileWork, dst, x []float32, ld, n, width int) {
	panel, terms := 2*t.lanes, t.terms(width)
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
