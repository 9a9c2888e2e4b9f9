//go:build amd64 || arm64

package gemm

// NewPacked makes room for op(B) of k x n values, all of them 0 until Repack.
func (t *Tiled) NewPacked(k, n int) *Packed {
	width := t.Panel()
	p := &Packed{K: k, N: n, of: t, columns: (n + width - 1) / width * width}
	p.words = make([]float32, t.Terms(k)*p.columns)
	return p
}

// Panel returns the columns of a panel.
func (t *Tiled) Panel() int { return 2 * t.Lanes }

// Repack packs columns from lo to hi of op(x), where op transposes if asked, into p, which t has made. lo is a multiple
// of Panel, and so is hi or it is N; threads may pack parts of their own.
func (t *Tiled) Repack(p *Packed, x Matrix, trans bool, lo, hi int) {
	w := t.Work.Take()
	of := Product{B: x, TransB: trans, K: p.K}
	step := t.blockK(p.K)
	for k := 0; k < p.K; k += step {
		b := block{p: &of, j: lo, nb: hi - lo, k: k, kb: min(step, p.K-k)}
		b.terms = t.Terms(b.kb)
		t.packB(w, p.words[p.at(k, b.terms, lo):], &b)
	}
	t.Work.Give(w)
}

// at returns the first word of the panel of column j in the block of terms from value k on. Blocks of terms lie one
// after the other, each with the panels of all columns.
func (p *Packed) at(k, terms, j int) int {
	return p.of.Terms(k)*p.columns + j*terms
}

// packed returns what p was packed as, nil where it has other panels than those of t or begins within one.
func (t *Tiled) packed(p *Product) *Packed {
	x := p.Packed
	if x == nil || x.of == nil || x.of.Lanes != t.Lanes || x.of.BF16 != t.BF16 || x.of.blockK(p.K) != t.blockK(p.K) ||
		p.PackedFrom%t.Panel() != 0 {
		return nil
	}
	return x
}

// stepK returns the values along k that are summed in registers: sums are cut so for k values whatever the cache is.
func (t *Tiled) stepK(k int) int {
	if t.BF16 {
		return parts(k, 2*t.terms, 2)
	}
	return parts(k, t.terms, 1)
}

// blockK returns the values along k of the blocks of B that k values are cut into: one step, or all of them.
func (t *Tiled) blockK(k int) int {
	if t.Terms(k) <= t.whole {
		return k
	}
	return t.stepK(k)
}
