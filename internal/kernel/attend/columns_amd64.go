package attend

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

//go:generate go run ../gen/attend -out passes_amd64.s -stubs passes_amd64.go -pkg attend

// columns computes blocks in bfloat16. Scores are transposed: a row for each key, a column for each query. So the
// maximum and the sums of the softmax go down the columns, without a step across a vector; keys need no padding; and
// every operand of the five products is either read as it lies in memory or as the passes over the scores leave it:
//
//	S^T  = K Q^T     rows of K as they are, Q as columns of panels
//	dP^T = V dO^T    likewise
//	O    = P V       words of two keys of P^T, rows of V in pairs
//	dQ   = dS K      likewise
//	dV   = P^T dO    rows of P^T, rows of dO in pairs
//	dK   = dS^T Q    likewise
//
// Scores are float32 and of panelWidth queries at a time, which stay in the level-1 cache; probabilities and their
// gradients are kept for the block, in bfloat16. P is exp(s - max) in the forward direction, and the sum divides the
// output.
//
// By AMX rows of words are transposed before they are a left operand, and terms are made whole tiles with zeros.
type columns struct {
	tiles  *gemm.Tiled
	amx    *gemm.AMX // nil: tiles multiplies
	sizes  Sizes
	alpha  float32
	wide   int // values of a row of halves that is copied: E, and room up to whole vectors
	stride int // values from one row of P^T to the next
	queue  gemm.Queue

	n       int            // keys
	given   [2]gemm.Matrix // keys and values
	rows    [2]gemm.Matrix // the same as bfloat16
	ready   bool           // rows are made
	inPairs keyOrValue     // what pairs holds, or none

	scores, grads        []float32    // rows of panelWidth queries
	p, ds, words         []float32    // halves: rows of P^T (words of P forward) and of dS^T, words of dS
	queries, dout        []float32    // Q and dO as columns of panels
	pairs                []float32    // of V or K
	queryPairs, outPairs []float32    // of Q and of dO
	copies               [4][]float32 // of K, V, Q and dO
	out                  []float32    // O or dQ where it is stored as bfloat16
	factors              []float32    // of the queries of a block
	turned               []float32    // tiles of words of a panel, transposed
	stats                [2 * panelWidth]float32
	args                 passArgs
}

// passArgs is what the passes over a panel of scores read; the generator in ../gen/attend knows the offsets.
type passArgs struct {
	scores     unsafe.Pointer // 0: rows of panelWidth words
	grads      unsafe.Pointer // 8
	keys       int            // 16
	queries    int            // 24
	stats      unsafe.Pointer // 32: panelWidth times lse, then factors
	bits       unsafe.Pointer // 40: of the first query
	bitsStride int            // 48: from one query to the next, in bytes
	scale      float32        // 56
	p          unsafe.Pointer // 64
	pRow       int            // 72: from one row of P and of dS to the next, in bytes
	ds         unsafe.Pointer // 80
	pairs      unsafe.Pointer // 88
	pairsRow   int            // 96: from one row of pairs to the next, in bytes
}

// vectorLanes is the queries of a vector.
const vectorLanes = 16

const halfSize = 2 // bytes

// blocks returns what computes whole blocks, nil where products do.
func (p Products) blocks(s Sizes) blocks {
	if p.Plain || !p.BF16 || p.Tiles == nil || s.Width > gemm.BlockN {
		return nil
	}
	return &columns{tiles: p.Tiles, amx: p.AMX, sizes: s, alpha: s.alpha(), wide: s.wide(),
		stride: pad(s.Queries, panelWidth)}
}

// wide returns the values of a row of halves that is copied.
func (s Sizes) wide() int { return pad(s.Width, panelWidth) }

// each calls take with the place of everything that columns works in and the floats that it takes.
func (c *columns) each(take func(place *[]float32, floats int)) {
	keys, queries := c.sizes.Keys, c.sizes.Queries
	keyPairs, queryPairs := pad(keys, panelWidth)/2, pad(queries, panelWidth)/2
	take(&c.scores, keys*panelWidth)
	take(&c.grads, keys*panelWidth)
	take(&c.queries, pad(queries, panelWidth)*c.wide/2)
	take(&c.pairs, keyPairs*c.wide)
	take(&c.p, keyPairs*c.stride)
	take(&c.copies[0], keys*c.wide/2)
	take(&c.copies[1], keys*c.wide/2)
	take(&c.copies[2], queries*c.wide/2)
	take(&c.out, queries*c.sizes.Width)
	take(&c.factors, queries)
	take(&c.turned, panelWidth*keyPairs)
	if c.sizes.Backward {
		take(&c.dout, pad(queries, panelWidth)*c.wide/2)
		take(&c.queryPairs, queryPairs*c.wide)
		take(&c.outPairs, queryPairs*c.wide)
		take(&c.ds, keyPairs*c.stride)
		take(&c.words, keyPairs*c.stride)
		take(&c.copies[3], queries*c.wide/2)
	}
}

// blocksScratch returns the floats that blocks work in.
func (s Sizes) blocksScratch() int {
	c, n := columns{sizes: s, wide: s.wide(), stride: pad(s.Queries, panelWidth)}, 0
	c.each(func(_ *[]float32, floats int) { n += pad(floats, lineFloats) })
	return n
}

func (c *columns) use(memory []float32) {
	c.each(func(place *[]float32, floats int) {
		*place, memory = memory[:floats:floats], memory[pad(floats, lineFloats):]
	})
	c.ready, c.inPairs = false, ofNone
}

func (c *columns) ahead(x gemm.Matrix, rows int) {
	size := gemm.WordSize
	if x.BF16 != nil {
		size = halfSize
	}
	c.queue.Lines = (c.sizes.Width*size + gemm.CacheLine - 1) / gemm.CacheLine
	c.queue.Add(x, rows)
}

func (c *columns) setKeys(k, v gemm.Matrix, n int) {
	c.given, c.n, c.ready, c.inPairs = [2]gemm.Matrix{ofKeys: k, ofValues: v}, n, false, ofNone
}

// prepare makes what is made once for a sequence: rows of keys and values, and one of them in pairs.
func (c *columns) prepare(paired keyOrValue) {
	for i, x := range c.given {
		if !c.ready {
			c.rows[i] = c.halves(x, c.n, c.copies[i])
		}
	}
	c.ready = true
	if c.inPairs != paired {
		c.pair(c.pairs, c.rows[paired], c.n)
		c.inPairs = paired
	}
}

// halves returns rows of E values of x as rows of bfloat16 that may be read in whole vectors: x itself if it is that. A
// 0 follows an odd number of values.
func (c *columns) halves(x gemm.Matrix, rows int, room []float32) gemm.Matrix {
	e := c.sizes.Width
	if x.BF16 != nil && e == c.wide {
		return x
	}
	to := gemm.Matrix{BF16: gemm.AsHalves(room), LD: c.wide}
	if c.amx != nil && e < c.wide {
		clear(to.BF16[:rows*c.wide])
	}
	gemm.PackHalves(to.BF16, c.wide, x, 0, rows, e)
	return to
}

// transpose makes rows of x columns of panels, and zeros of the columns up to a whole vector.
func (c *columns) transpose(dst []float32, x gemm.Matrix, rows int) {
	panel, words := c.wide/2*panelWidth, c.wide/2
	for r := 0; r < rows; r += vectorLanes {
		from, to := &x.BF16[r*x.LD], &dst[r/panelWidth*panel+r%panelWidth]
		attendTranspose((*byte)(unsafe.Pointer(to)), (*byte)(unsafe.Pointer(from)), x.LD*halfSize, rows-r,
			words/vectorLanes)
	}
}

// pair packs rows of x in pairs, the last of an odd number with zeros.
func (c *columns) pair(dst []float32, x gemm.Matrix, rows int) {
	terms := c.terms(rows)
	c.tiles.PackRows(dst, panelWidth, panelWidth*terms, x, 0, rows, c.sizes.Width, panelWidth)
	for q := 0; q < c.sizes.Width; q += panelWidth {
		clear(dst[(q/panelWidth*terms+c.tiles.Terms(rows))*panelWidth:][:(terms-c.tiles.Terms(rows))*panelWidth])
	}
}

// terms returns the words of n values along k.
func (c *columns) terms(n int) int {
	if c.amx != nil {
		return pad(n, panelWidth) / 2
	}
	return c.tiles.Terms(n)
}

// paired returns rows that pair packed as right operand.
func (c *columns) paired(x []float32, rows int) gemm.PanelsOperand {
	const row = panelWidth * gemm.WordSize
	return gemm.PanelsOperand{At: unsafe.Pointer(&x[0]), K: row, Panel: c.terms(rows) * row}
}

// scored sets rows of s to alpha times the products of rows of x with n columns from i on.
func (c *columns) scored(w *gemm.TileWork, s []float32, x gemm.Matrix, panels []float32, i, n int, alpha float32) {
	at := i / panelWidth * (c.wide / 2 * panelWidth)
	row := x.LD * halfSize
	if c.amx != nil {
		c.multiply(gemm.TilesProduct{
			M: c.n, N: pad(n, vectorLanes), Steps: c.wide / panelWidth, Alpha: alpha, C: s, LDC: panelWidth,
			A: gemm.TilesOperand{At: unsafe.Pointer(&x.BF16[0]), Row: row, Step: tileRow},
		}, gemm.PanelsOperand{At: unsafe.Pointer(&panels[at]), K: panelWidth * gemm.WordSize})
		return
	}
	_, height := c.tiles.Heights(c.n)
	c.tiles.MultiplyPanels(w, &gemm.PanelProduct{
		M: c.n, N: pad(n, vectorLanes), Terms: c.tiles.Terms(c.sizes.Width), Alpha: alpha, C: s, LDC: panelWidth,
		Padded: true,
		A:      gemm.RowsOperand{At: unsafe.Pointer(&x.BF16[0]), Row: row, K: gemm.WordSize, Tile: height * row},
		B:      gemm.PanelsOperand{At: unsafe.Pointer(&panels[at]), K: panelWidth * gemm.WordSize},
	}, &c.queue)
}

// weighed sets rows of y, one for each query, to alpha times the sums of pairs of rows of the sequence, weighed by
// words.
func (c *columns) weighed(w *gemm.TileWork, y gemm.Matrix, rows int, words []float32, alpha float32) {
	if c.amx != nil {
		c.weighedByAMX(y, rows, words, alpha)
		return
	}
	_, height := c.tiles.Heights(rows)
	c.tiles.MultiplyPanels(w, &gemm.PanelProduct{
		M: rows, N: c.sizes.Width, Terms: c.tiles.Terms(c.n), Alpha: alpha, C: y.F32, LDC: y.LD,
		A: gemm.RowsOperand{At: unsafe.Pointer(&words[0]), Row: gemm.WordSize, K: c.stride * gemm.WordSize,
			Tile: height * gemm.WordSize},
		B: c.paired(c.pairs, c.n),
	}, &c.queue)
}

// spread sets rows of y, one for each key, to alpha times the sums of pairs of rows of the block, weighed by rows of s,
// or adds them.
func (c *columns) spread(w *gemm.TileWork, y []float32, ldy int, s, pairs []float32, rows int, alpha float32,
	add bool) {
	row := c.stride * halfSize
	if c.amx != nil {
		c.clearQueries(s, rows)
		c.multiply(gemm.TilesProduct{
			M: c.n, N: c.sizes.Width, Steps: pad(rows, panelWidth) / panelWidth, Alpha: alpha, Add: add, C: y, LDC: ldy,
			A: gemm.TilesOperand{At: unsafe.Pointer(&s[0]), Row: row, Step: tileRow},
		}, c.paired(pairs, rows))
		return
	}
	_, height := c.tiles.Heights(c.n)
	c.tiles.MultiplyPanels(w, &gemm.PanelProduct{
		M: c.n, N: c.sizes.Width, Terms: c.tiles.Terms(rows), Alpha: alpha, Add: add, C: y, LDC: ldy,
		A: gemm.RowsOperand{At: unsafe.Pointer(&s[0]), Row: row, K: gemm.WordSize, Tile: height * row},
		B: c.paired(pairs, rows),
	}, &c.queue)
}

// tileRow is the bytes of a row of a tile.
const tileRow = 64

// multiply computes p by AMX.
func (c *columns) multiply(p gemm.TilesProduct, b gemm.PanelsOperand) {
	w := c.amx.Work.Take()
	p.B, p.Panel = gemm.TilesOperand{At: b.At, Row: b.K, Step: vectorLanes * b.K}, b.Panel
	c.queue.One()
	c.amx.MultiplyTiles(w, &p)
	c.amx.Work.Give(w)
}

// weighedByAMX is weighed, a panel of queries at a time.
func (c *columns) weighedByAMX(y gemm.Matrix, rows int, words []float32, alpha float32) {
	pairs, steps := c.tiles.Terms(c.n), c.terms(c.n)/vectorLanes
	clear(words[pairs*c.stride:][:(steps*vectorLanes-pairs)*c.stride])
	tile := steps * vectorLanes * vectorLanes
	for i := 0; i < rows; i += panelWidth {
		for j := 0; j < panelWidth; j += vectorLanes {
			c.amx.TransposeWords(c.turned[j/vectorLanes*tile:], words[i+j:], c.stride, steps)
		}
		c.multiply(gemm.TilesProduct{
			M: min(panelWidth, rows-i), N: c.sizes.Width, Steps: steps, Alpha: alpha, C: y.F32[i*y.LD:], LDC: y.LD,
			A: gemm.TilesOperand{At: unsafe.Pointer(&c.turned[0]), Row: tileRow, Tile: tile * gemm.WordSize,
				Step: vectorLanes * tileRow},
		}, c.paired(c.pairs, c.n))
	}
}

// clearQueries sets what rows of halves of P^T or dS^T have beyond the vectors of so many queries to 0, up to whole
// tiles.
func (c *columns) clearQueries(s []float32, queries int) {
	from, to := pad(queries, vectorLanes), pad(queries, panelWidth)
	if from == to {
		return
	}
	halves := gemm.AsHalves(s)
	for j := range c.n {
		clear(halves[j*c.stride:][from:to])
	}
}

// shift adds the bias to a panel of scores, the queries from i on, and takes away what a query must not see.
func (c *columns) shift(b *Block, i int) {
	if b.Bias != nil {
		all := c.n * panelWidth
		clear(c.grads[:all])
		c.tiles.Transpose(c.grads, panelWidth, b.Bias[i*b.LDBias:], b.LDBias, min(panelWidth, b.N-i), c.n)
		vector.Add(c.scores[:all], c.scores, c.grads)
	}
	first := b.First + i
	for j := first + 1; b.Causal && j < c.n; j++ {
		vector.Fill(c.scores[j*panelWidth:][:min(j-first, panelWidth)], float32(math.Inf(-1)))
	}
}

// pass sets the arguments of a pass over the queries from i on.
func (c *columns) pass(b *Block, i int) *byte {
	a := &c.args
	*a = passArgs{
		scores: unsafe.Pointer(&c.scores[0]), grads: unsafe.Pointer(&c.grads[0]), keys: c.n,
		queries: min(panelWidth, b.N-i),
		stats:   unsafe.Pointer(&c.stats[0]), scale: 1, pRow: c.stride * halfSize, pairsRow: c.stride * gemm.WordSize,
	}
	if b.Bits != nil {
		a.bits, a.bitsStride, a.scale = unsafe.Pointer(&b.Bits[i*b.Words]), b.Words*4, b.Scale
	}
	return (*byte)(unsafe.Pointer(a))
}

func (c *columns) forward(b *Block) {
	w := c.tiles.Work.Take()
	c.prepare(ofValues)
	c.transpose(c.queries, c.halves(b.Q, b.N, c.copies[2]), b.N)
	c.queue.Products = (b.N+panelWidth-1)/panelWidth + 1
	for i := 0; i < b.N; i += panelWidth {
		n := min(panelWidth, b.N-i)
		c.scored(w, c.scores, c.rows[ofKeys], c.queries, i, n, c.alpha)
		c.shift(b, i)
		args := c.pass(b, i)
		c.args.p, c.args.pRow = unsafe.Pointer(&c.p[i]), c.args.pairsRow
		attendSoftmax(args)
		copy(b.LSE[i:i+n], c.stats[:])
		copy(c.factors[i:i+n], c.stats[panelWidth:])
	}
	y := c.result(b.Out)
	c.weighed(w, y, b.N, c.p, 1)
	c.store(b.Out, y, b.N, &c.factors[0], gemm.WordSize)
	c.tiles.Work.Give(w)
}

func (c *columns) backward(b *Block, g *Grads) {
	w := c.tiles.Work.Take()
	c.prepare(ofKeys)
	q, do := c.halves(b.Q, b.N, c.copies[2]), c.halves(g.DOut, b.N, c.copies[3])
	c.transpose(c.queries, q, b.N)
	c.transpose(c.dout, do, b.N)
	c.queue.Products = 2*((b.N+panelWidth-1)/panelWidth) + 3
	for i := 0; i < b.N; i += panelWidth {
		n := min(panelWidth, b.N-i)
		c.scored(w, c.scores, c.rows[ofKeys], c.queries, i, n, c.alpha)
		c.shift(b, i)
		c.scored(w, c.grads, c.rows[ofValues], c.dout, i, n, 1)
		args := c.pass(b, i)
		c.args.p = unsafe.Pointer(&gemm.AsHalves(c.p)[i])
		c.args.ds, c.args.pairs = unsafe.Pointer(&gemm.AsHalves(c.ds)[i]), unsafe.Pointer(&c.words[i])
		clear(c.stats[copy(c.stats[:], b.LSE[i:i+n]):panelWidth])
		attendGradient(args)
		if g.DBias != nil {
			c.addBias(g.DBias[i*b.LDBias:], b.LDBias, n)
		}
	}
	c.pair(c.outPairs, do, b.N)
	c.spread(w, g.DV, g.LDDKV, c.p, c.outPairs, b.N, 1, g.Add)
	c.pair(c.queryPairs, q, b.N)
	c.spread(w, g.DK, g.LDDKV, c.ds, c.queryPairs, b.N, c.alpha, g.Add)
	y := c.result(g.DQ)
	c.weighed(w, y, b.N, c.words, c.alpha)
	if g.DQ.BF16 != nil {
		c.round(g.DQ, y.F32, b.N)
	}
	c.tiles.Work.Give(w)
}

// addBias adds the gradients of a panel of n queries to rows of dst.
func (c *columns) addBias(dst []float32, ld, n int) {
	c.tiles.Transpose(c.scores, c.n, c.grads, panelWidth, c.n, n)
	for i := range n {
		row := dst[i*ld:][:c.n]
		vector.Add(row, row, c.scores[i*c.n:])
	}
}

// result returns where a product is made that goes to x.
func (c *columns) result(x gemm.Matrix) gemm.Matrix {
	if x.BF16 == nil {
		return x
	}
	return gemm.Matrix{F32: c.out, LD: c.sizes.Width}
}

// round sets rows of dst to rows of E values of src.
func (c *columns) round(dst gemm.Matrix, src []float32, rows int) {
	c.stats[0] = 1
	c.store(dst, gemm.Matrix{F32: src, LD: c.sizes.Width}, rows, &c.stats[0], 0)
}

// store sets rows of to to those of y times factors that lie step bytes apart.
func (c *columns) store(to, y gemm.Matrix, rows int, factor *float32, step int) {
	if to.BF16 != nil {
		attendScaleHalves(&to.BF16[0], to.LD*halfSize, &y.F32[0], y.LD*gemm.WordSize, rows, c.sizes.Width, factor, step)
		return
	}
	attendScale(&to.F32[0], to.LD*gemm.WordSize, &y.F32[0], y.LD*gemm.WordSize, rows, c.sizes.Width, factor, step)
}
