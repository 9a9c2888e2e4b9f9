package kernel

// aheadQueue holds rows that are needed soon. The heads of a sequence lie in short
// pieces, a whole row of the matrix apart, which the processor does not foresee: while
// one head is computed, tiles ask for the next one.
type aheadQueue struct {
	of       [4]aheadRows
	n        int // matrices
	lines    int // of a row
	rows     int // left in all of them
	products int // that share them
	share    int // rows for each tile of this product
}

// aheadRows is what is left of one matrix.
type aheadRows struct {
	x        []float32
	ld, rows int
}

// add queues rows of x, unless there are too many matrices already.
func (q *aheadQueue) add(x []float32, ld, rows int) {
	if q.n < len(q.of) {
		q.of[q.n] = aheadRows{x, ld, rows}
		q.n++
		q.rows += rows
	}
}

// product shares what is left over the tiles of this product and those that follow.
func (q *aheadQueue) product(tiles int) {
	q.products = max(q.products, 1)
	quota := (q.rows + q.products - 1) / q.products
	q.share = (quota + tiles - 1) / tiles
	q.products--
}

// tile asks for the share of a tile.
func (q *aheadQueue) tile() {
	for left := q.share; left > 0 && q.n > 0; {
		r := &q.of[q.n-1]
		if r.rows == 0 {
			q.n--
			continue
		}
		m := min(left, r.rows)
		gemmPrefetch(Matrix{F32: r.x}.first((r.rows-m)*r.ld), r.ld*wordSize, q.lines, m)
		r.rows -= m
		q.rows -= m
		left -= m
	}
}
