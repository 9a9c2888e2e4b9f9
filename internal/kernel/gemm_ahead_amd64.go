package kernel

// ahead is what is left to prefetch of the next group of A. Packing alternates
// with computing, and would wait for memory otherwise: 2080x384x1536 in bfloat16
// from float32 gained 8 %. A transposed A, whose group lies in many short pieces,
// gained nothing.
type ahead struct {
	at, rows int // first value and number of rows
	lines    int // of a row
	share    int // rows to prefetch after each tile
}

const cacheLine = 64

// lookAhead plans the prefetch of the group after that of b over a number of tiles.
func (b *block) lookAhead(tiles int) {
	b.ahead = ahead{}
	p, next := b.p, b.i+b.mb
	if next >= p.M || p.TransA {
		return
	}
	rows := min(b.mb, p.M-next)
	b.ahead = ahead{at: next*p.A.LD + b.k, rows: rows, lines: (b.kb*p.A.size() + cacheLine - 1) / cacheLine, share: (rows + tiles - 1) / tiles}
}

// prefetch asks for the next share.
func (b *block) prefetch() {
	a := &b.ahead
	if a.rows == 0 {
		return
	}
	n, x := min(a.share, a.rows), &b.p.A
	gemmPrefetch(x.first(a.at), x.LD*x.size(), a.lines, n)
	a.at += n * x.LD
	a.rows -= n
}
