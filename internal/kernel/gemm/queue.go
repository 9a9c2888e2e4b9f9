//go:build amd64 || arm64

package gemm

// Queue holds rows that are needed soon. The heads of a sequence lie in short
// pieces, a whole row of the matrix apart, which the processor does not foresee: while
// one head is computed, tiles ask for the next one.
type Queue struct {
	of       [8]aheadRows
	n        int // matrices
	Lines    int // of a row of what is added next
	rows     int // left in all of them
	Products int // that share them
	share    int // rows for each tile of this product
}

// aheadRows is what is left of one matrix.
type aheadRows struct {
	x     Matrix
	rows  int
	lines int // of a row
}

// Add queues rows of x, unless there are too many matrices already.
func (q *Queue) Add(x Matrix, rows int) {
	if q.n < len(q.of) {
		q.of[q.n] = aheadRows{x, rows, q.Lines}
		q.n++
		q.rows += rows
	}
}

// product shares what is left over the tiles of this product and those that follow.
func (q *Queue) product(tiles int) {
	q.Products = max(q.Products, 1)
	quota := (q.rows + q.Products - 1) / q.Products
	q.share = (quota + tiles - 1) / tiles
	q.Products--
}

// tile asks for the share of a tile.
func (q *Queue) tile() {
	for left := q.share; left > 0 && q.n > 0; {
		r := &q.of[q.n-1]
		if r.rows == 0 {
			q.n--
			continue
		}
		m := min(left, r.rows)
		gemmPrefetch(r.x.first((r.rows-m)*r.x.LD), r.x.LD*r.x.size(), r.lines, m)
		r.rows -= m
		q.rows -= m
		left -= m
	}
}

// One is for a product that is not made tile by tile.
func (q *Queue) One() {
	q.product(1)
	if q.share > 0 {
		q.tile()
	}
}
