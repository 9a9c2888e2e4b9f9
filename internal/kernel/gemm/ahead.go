//go:build amd64 || arm64

package gemm

// ahead is what is left to prefetch of what is packed next. Packing alternates
// with computing, and would wait for memory otherwise.
type ahead struct {
	x        Matrix
	at, rows int // first value and number of rows as stored
	lines    int // of a row
	share    int // rows to prefetch after each tile
}

const (
	// CacheLine is the bytes of a cache line, the unit of prefetching.
	CacheLine = 64
	// aheadBytes is what the level-2 cache has room for beside the panels.
	aheadBytes = 384 << 10
)

// lookAhead plans the prefetch during the tiles of the group of b: of the next
// group of A (2080x384x1536 in bfloat16 from float32 gained 8 %; transposed, where it
// lies in many short pieces, 2 % at 1536x384x3840); after the only group of a few rows of the next block of B, which
// takes longer to pack than to use (32x65568x256 gained 8 to 19 %).
func (b *block) lookAhead(tiles int) {
	b.ahead = ahead{}
	p, next := b.p, b.i+b.mb
	switch {
	case next < p.M && p.TransA:
		b.plan(p.A, b.k*p.A.LD+next, b.kb, min(b.mb, p.M-next), tiles)
	case next < p.M:
		b.plan(p.A, next*p.A.LD+b.k, min(b.mb, p.M-next), b.kb, tiles)
	case b.mb == p.M && b.packs:
		j, k := b.j, b.k+b.kb
		if k == p.K {
			j, k = b.j+b.nb, 0
		}
		nb, kb := min(b.stepN, p.N-j), min(b.stepK, p.K-k)
		switch {
		case nb <= 0:
		case p.TransB:
			b.plan(p.B, j*p.B.LD+k, nb, kb, tiles)
		default:
			b.plan(p.B, k*p.B.LD+j, kb, nb, tiles)
		}
	}
}

// plan sets the prefetch of rows of n values of x from value at on.
func (b *block) plan(x Matrix, at, rows, n, tiles int) {
	lines := (n*x.size() + CacheLine - 1) / CacheLine
	rows = min(rows, max(1, aheadBytes/CacheLine/lines))
	b.ahead = ahead{x: x, at: at, rows: rows, lines: lines, share: (rows + tiles - 1) / tiles}
}

// prefetch asks for the next share.
func (b *block) prefetch() {
	a := &b.ahead
	if a.rows == 0 {
		return
	}
	n := min(a.share, a.rows)
	gemmPrefetch(a.x.first(a.at), a.x.LD*a.x.size(), a.lines, n)
	a.at += n * a.x.LD
	a.rows -= n
}
