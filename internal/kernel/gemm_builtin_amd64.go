package kernel

import "unsafe"

//go:generate go run ./gen/gemm -out gemm_tiles_amd64.s -stubs gemm_tiles_amd64.go -pkg kernel

// tiledGemm is the built-in product. C is computed in tiles of up to maxRows x
// panel columns whose sums stay in registers; B is packed into panels of panel
// columns, a block of blockK rows and blockN columns at a time, so that the block
// stays in the level-2 cache while all rows of A pass over it. A is read in place
// unless it is transposed: then the rows of a tile are copied together, since
// values a large stride apart compete for the same lines of the level-1 cache.
type tiledGemm struct {
	level   string
	lanes   int  // floats in a vector
	maxRows int  // largest tile height
	masked  bool // tiles may be narrower than a vector
	// tiles[r-1][v-1] computes a tile of r rows and v vectors.
	tiles [][2]func(*byte)
	work  freelist[tileWork]
}

const (
	blockK    = 256
	blockN    = 512
	maxPanel  = 32 // columns of the widest panel
	maxTile   = 16 // no tile has more rows
	floatSize = 4
)

// tileArgs is what a tile function reads; the generator in gen/gemm knows the offsets.
type tileArgs struct {
	k        int            // 0: number of terms, at least 1
	a        unsafe.Pointer // 8
	aRow, aK int            // 16, 24: strides of A along rows and terms, in bytes
	b        unsafe.Pointer // 32
	bK       int            // 40: stride of B along terms, in bytes
	c        unsafe.Pointer // 48
	cRow     int            // 56: stride of C, in bytes
	alpha    float32        // 64
	add      uint32         // 68: not 0 to add to C
	mask     uint64         // 72: one bit for each column
}

// tileWork is the memory of one product in progress.
type tileWork struct {
	args  tileArgs
	panel [blockK * blockN]float32
	rows  [blockK * maxTile]float32
	edge  [maxTile * maxPanel]float32
}

func (t *tiledGemm) info() (version, file string) { return t.level, "" }

// sgemm implements gemmBackend. Every element of C sums its products in the
// order of k, in blocks of blockK.
func (t *tiledGemm) sgemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if beta != 0 && beta != 1 {
		for i := range m {
			scaleRow(c[i*ldc:i*ldc+n], beta)
		}
	}
	w := t.work.take()
	for p := 0; p < k; p += blockK {
		kb := min(blockK, k-p)
		w.args.k, w.args.alpha, w.args.add = kb, alpha, 0
		if beta != 0 || p > 0 {
			w.args.add = 1
		}
		first := p
		aRow, aK := lda, 1
		if transA {
			first = p * lda
			aRow, aK = 1, lda
		}
		for j := 0; j < n; j += blockN {
			nb := min(blockN, n-j)
			corner := p*ldb + j
			if transB {
				corner = j*ldb + p
			}
			t.block(w, transB, m, nb, kb, a[first:], aRow, aK, b[corner:], ldb, c[j:], ldc)
		}
	}
	w.args.a, w.args.b, w.args.c = nil, nil, nil
	t.work.give(w)
}

// block adds the product of m x kb of A and kb x nb of B to C. A has strides aRow
// and aK along rows and terms.
func (t *tiledGemm) block(w *tileWork, transB bool, m, nb, kb int, a []float32, aRow, aK int, b []float32, ldb int, c []float32, ldc int) {
	width := 2 * t.lanes
	// Packing pays when many tiles pass over the panel.
	direct := !transB && m <= 4*t.maxRows
	if !direct {
		t.pack(w, transB, nb, kb, b, ldb)
	}
	tiles := (m + t.maxRows - 1) / t.maxRows
	for i := range tiles {
		// Tiles of nearly the same height: a last one of one row would be slow.
		lo, hi := m*i/tiles, m*(i+1)/tiles
		at, rows := a[lo*aRow:], hi-lo
		w.args.aRow, w.args.aK = aRow*floatSize, aK*floatSize
		if aRow == 1 && nb > 2*width {
			for p := range kb {
				copy(w.rows[p*rows:(p+1)*rows], at[p*aK:p*aK+rows])
			}
			at, w.args.aK = w.rows[:], rows*floatSize
		}
		w.args.a = unsafe.Pointer(&at[0])
		for j := 0; j < nb; j += width {
			cols := min(width, nb-j)
			if direct {
				w.args.b, w.args.bK = unsafe.Pointer(&b[j]), ldb*floatSize
			} else {
				w.args.b, w.args.bK = unsafe.Pointer(&w.panel[j*kb]), width*floatSize
			}
			t.tile(w, rows, cols, kb, direct, b, j, c[lo*ldc+j:], ldc)
		}
	}
}

// tile computes one tile of C. A partial tile without masks goes through w.edge.
func (t *tiledGemm) tile(w *tileWork, rows, cols, kb int, direct bool, b []float32, j int, c []float32, ldc int) {
	vectors := (cols + t.lanes - 1) / t.lanes
	f := t.tiles[rows-1][vectors-1]
	args := (*byte)(unsafe.Pointer(&w.args))
	if t.masked || cols == vectors*t.lanes {
		w.args.mask = 1<<cols - 1
		w.args.c, w.args.cRow = unsafe.Pointer(&c[0]), ldc*floatSize
		f(args)
		return
	}
	if direct {
		// The panel must be padded to whole vectors.
		t.packPlain(w.panel[:], 2*t.lanes, kb, b[j:], w.args.bK/floatSize, cols)
		w.args.b, w.args.bK = unsafe.Pointer(&w.panel[0]), 2*t.lanes*floatSize
	}
	add := w.args.add
	w.args.add = 0
	w.args.c, w.args.cRow = unsafe.Pointer(&w.edge[0]), maxPanel*floatSize
	f(args)
	w.args.add = add
	for i := range rows {
		from, to := w.edge[i*maxPanel:][:cols], c[i*ldc:][:cols]
		if add == 0 {
			copy(to, from)
			continue
		}
		for q, v := range from {
			to[q] += v
		}
	}
}

// pack copies kb x nb of op(B) into panels of kb x width, padded with zeros.
func (t *tiledGemm) pack(w *tileWork, transB bool, nb, kb int, b []float32, ldb int) {
	width := 2 * t.lanes
	for j := 0; j < nb; j += width {
		cols := min(width, nb-j)
		panel := w.panel[j*kb : (j+width)*kb]
		if transB {
			packTransposed(panel, width, kb, b[j*ldb:], ldb, cols)
		} else {
			t.packPlain(panel, width, kb, b[j:], ldb, cols)
		}
	}
}

// packPlain sets panel[p*width+q] = b[p*ldb+q] for q < cols, 0 up to width.
func (t *tiledGemm) packPlain(panel []float32, width, kb int, b []float32, ldb, cols int) {
	for p := range kb {
		row := panel[p*width : (p+1)*width]
		copy(row, b[p*ldb:p*ldb+cols])
		if cols < width {
			clear(row[cols:])
		}
	}
}

// packTransposed sets panel[p*width+q] = b[q*ldb+p] for q < cols, 0 up to width.
func packTransposed(panel []float32, width, kb int, b []float32, ldb, cols int) {
	q, k8 := 0, kb/8
	if k8 > 0 {
		for ; q+8 <= cols; q += 8 {
			gemmPack8(&panel[q], width*floatSize, &b[q*ldb], ldb*floatSize, k8)
			for p := k8 * 8; p < kb; p++ {
				for r := q; r < q+8; r++ {
					panel[p*width+r] = b[r*ldb+p]
				}
			}
		}
	}
	for ; q < cols; q++ {
		for p, v := range b[q*ldb : q*ldb+kb] {
			panel[p*width+q] = v
		}
	}
	if cols < width {
		for p := range kb {
			clear(panel[p*width+cols : (p+1)*width])
		}
	}
}
