package attend

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Sizes says what a Head is for. Letters: L keys of a sequence, E
// values of a head.
type Sizes struct {
	Keys, Width int // most keys of a sequence, and E
	Queries     int // most queries of a block, see BlockSize
	Backward    bool
}

// Head computes softmax(q k^T / sqrt(E)) v (Vaswani et al. 2017, equation 1) and
// its gradient, for one head of one sequence of keys and a block of queries at a time,
// on one thread. Only the scores of a block are in memory, and what is made of the
// keys is kept from block to block. Nothing is allocated after New. Results
// depend on the values, the sizes, the instruction set and the precision of the
// engine alone.
//
// Products are of float32 or, on an engine for bf16, of operands rounded to bfloat16
// with float32 sums, but for blocks of up to fewQueries queries, which are limited by
// memory: these are float32 always. Operands and results may be stored in either.
type Head struct {
	sizes    Sizes
	stride   int     // of a row of scores
	alpha    float32 // 1/sqrt(E)
	keys     int     // of the sequence
	k, v     gemm.Matrix
	products products
	blocks   blocks // what computes blocks of more than a few queries, nil: products
	widened  bool   // products has the keys
	room     int    // floats that blocks works in
	// What products works on: scores, the same after dropout, their gradients, and what is
	// stored as bfloat16.
	scores, dropped, grads []float32
	floats                 struct{ k, v, q, dout, out []float32 }
}

// blocks computes blocks of queries as Head does.
type blocks interface {
	use(memory []float32)
	ahead(x gemm.Matrix, rows int)
	setKeys(k, v gemm.Matrix, n int)
	forward(b *Block)
	backward(b *Block, g *Grads)
	round(dst gemm.Matrix, src []float32, rows int)
}

// products are the products of attention with the keys (or the values) of a
// sequence. Rows of scores have the stride of Head, and matrices are of float32.
type products interface {
	// use hands over memory.
	use(memory []float32)
	// ahead queues rows of E values to prefetch during the products that follow.
	ahead(x gemm.Matrix, rows int)
	// begin says how many products follow with the present keys; what is still queued
	// afterwards is dropped.
	begin(products int)
	// setKeys sets the sequence.
	setKeys(keys sequence)
	// scores sets s = alpha * x op^T for rows of x.
	scores(s []float32, x gemm.Matrix, rows int, alpha float32, of keyOrValue)
	// weigh sets y = alpha * s op for rows of s.
	weigh(y gemm.Matrix, s []float32, rows int, alpha float32, of keyOrValue)
	// spread sets y = alpha * s^T x for rows of s and x, or adds it to y.
	spread(y []float32, ldy int, s []float32, x gemm.Matrix, rows int, alpha float32, add bool)
}

// keyOrValue names one of the two matrices of a sequence.
type keyOrValue int

const (
	ofKeys keyOrValue = iota
	ofValues
	ofNone
)

// sequence is one head of a sequence: n rows of keys and values.
type sequence struct {
	of [2]gemm.Matrix
	n  int
}

// fewQueries is the size up to which a block is computed straight from the keys as they
// lie in memory: packing them for a product takes as long as three queries.
const fewQueries = 2

// blockScores bounds the scores of a block, so that they stay in the level-2 cache with
// all that is multiplied however long the sequences are.
const blockScores = 16384

// BlockSize returns the queries of a block for sequences of that many keys: all
// queries, which are at least 1, or equal parts of them in whole vectors.
func BlockSize(queries, keys int) int {
	const vector = 16
	most := max(vector, blockScores/scoreStride(keys))
	if queries <= most {
		return queries
	}
	blocks := (queries + most - 1) / most
	return pad((queries+blocks-1)/blocks, vector)
}

// panelWidth is the most columns that the products read at a time.
const panelWidth = 32

// scoreStride returns the floats from one row of n scores to the next: whole cache
// lines, but not a large power of two of bytes, whose rows would share their place in
// the level-1 cache.
func scoreStride(n int) int {
	stride := pad(n, 16)
	if stride%256 == 0 {
		stride += 16
	}
	return stride
}

// pad rounds n up to a multiple of unit.
func pad(n, unit int) int { return (n + unit - 1) / unit * unit }

// lineFloats is the floats of a cache line, where each part of the memory begins.
const lineFloats = 16

// Scratch returns the floats of memory that Use wants.
func (s Sizes) Scratch() int {
	n := lineFloats + s.blocksScratch()
	(&Head{sizes: s}).each(func(_ *[]float32, floats int) { n += pad(floats, lineFloats) })
	wide := pad(s.Width, panelWidth)
	panels := 2 * pad(s.Keys, panelWidth) * wide // K^T and V
	if s.Backward {
		panels *= 2 // V^T and K too
	}
	return n + panels + 2*s.Queries*max(wide, scoreStride(s.Keys))
}

// each calls take with the place of everything that a Head works in and the floats that it takes.
func (a *Head) each(take func(place *[]float32, floats int)) {
	s := a.sizes
	scores := s.Queries * scoreStride(s.Keys)
	take(&a.scores, scores)
	take(&a.floats.k, s.Keys*s.Width)
	take(&a.floats.v, s.Keys*s.Width)
	take(&a.floats.q, s.Queries*s.Width)
	take(&a.floats.out, s.Queries*s.Width)
	if s.Backward {
		take(&a.dropped, scores)
		take(&a.grads, scores)
		take(&a.floats.dout, s.Queries*s.Width)
	}
}

// Products says what a Head multiplies by.
type Products struct {
	Plain bool // in Go alone
	BF16  bool // operands are rounded to bfloat16
	// Float and Tiles are the built-in products of float32 and of bfloat16, nil for what
	// the instruction set has, and where it has none.
	Float, Tiles *gemm.Tiled
	AMX          *gemm.AMX // the built-in product of bfloat16 by AMX, nil where there is none
}

// New returns a Head.
func New(s Sizes, p Products) *Head {
	return &Head{
		sizes: s, stride: scoreStride(s.Keys), alpha: s.alpha(), products: p.of(s), blocks: p.blocks(s),
		room: s.blocksScratch(),
	}
}

// alpha returns what scores are multiplied by.
func (s Sizes) alpha() float32 { return float32(1 / math.Sqrt(float64(s.Width))) }

// Use hands over memory of at least Scratch floats. What it holds is undefined before
// and after; SetKeys must follow.
func (a *Head) Use(memory []float32) {
	const word = 4
	if past := uintptr(unsafe.Pointer(&memory[0])) / word % lineFloats; past != 0 {
		memory = memory[lineFloats-past:]
	}
	a.each(func(place *[]float32, floats int) {
		*place, memory = memory[:floats:floats], memory[pad(floats, lineFloats):]
	})
	if a.blocks != nil {
		a.blocks.use(memory[:a.room:a.room])
		memory = memory[a.room:]
	}
	a.products.use(memory)
}

// SetKeys sets the keys and values of the blocks that follow: n >= 1 rows of E values
// of each. The slices must not change before the last of these blocks.
func (a *Head) SetKeys(k, v gemm.Matrix, n int) {
	vector.CheckMatrix("keys", n, a.sizes.Width, k.Length(), k.LD)
	vector.CheckMatrix("values", n, a.sizes.Width, v.Length(), v.LD)
	if n < 1 || n > a.sizes.Keys {
		panic("kernel: attention: more keys than it was made for, or none")
	}
	a.k, a.v, a.keys, a.widened = k, v, n, false
	if a.blocks != nil {
		a.blocks.setKeys(k, v, n)
	}
}

// Ahead says that rows of E values of x will be read or written soon after the next
// Forward or Backward, which then asks for them beforehand. Eight such hints count.
func (a *Head) Ahead(x gemm.Matrix, rows int) {
	if a.blocks != nil {
		a.blocks.ahead(x, rows)
		return
	}
	a.products.ahead(x, rows)
}

// widen returns rows of x as float32, in room where they are not.
func (a *Head) widen(room []float32, x gemm.Matrix, rows int) gemm.Matrix {
	if x.BF16 == nil {
		return x
	}
	vector.FromHalfRows(room, x.BF16, x.LD, rows, a.sizes.Width)
	return gemm.Matrix{F32: room, LD: a.sizes.Width}
}

// widenKeys gives the products the keys.
func (a *Head) widenKeys() {
	if a.widened {
		return
	}
	a.widened = true
	k, v := a.widen(a.floats.k, a.k, a.keys), a.widen(a.floats.v, a.v, a.keys)
	a.products.setKeys(sequence{of: [2]gemm.Matrix{ofKeys: k, ofValues: v}, n: a.keys})
}

// result returns rows of float32 where what goes to x is made.
func (a *Head) result(x gemm.Matrix) gemm.Matrix {
	if x.BF16 == nil {
		return x
	}
	return gemm.Matrix{F32: a.floats.out, LD: a.sizes.Width}
}

// store rounds rows of y to x where that is of bfloat16.
func (a *Head) store(x, y gemm.Matrix, rows int) {
	if x.BF16 != nil {
		a.Round(x, y.F32, rows)
	}
}

// Round sets rows of dst, which is of bfloat16, to rows of E values of src.
func (a *Head) Round(dst gemm.Matrix, src []float32, rows int) {
	vector.CheckMatrix("rounded", rows, a.sizes.Width, len(dst.BF16), dst.LD)
	vector.CheckMatrix("rows", rows, a.sizes.Width, len(src), a.sizes.Width)
	if a.blocks != nil {
		a.blocks.round(dst, src, rows)
		return
	}
	vector.ToHalfRows(dst.BF16, src, dst.LD, rows, a.sizes.Width)
}

// Block is a block of queries.
type Block struct {
	N int         // rows of Q and Out, at least 1
	Q gemm.Matrix // rows of E values
	// LSE holds log sum exp of the scores of each query: set by Forward, read by
	// Backward.
	LSE []float32
	// Bits is the dropout mask of the probabilities, Words to a query, or nil: those
	// whose bit is zero become 0, the others are multiplied by Scale.
	Bits  []int32
	Words int
	Scale float32
	// Bias is added to the scores, a row of LDBias values for each query; nil: none.
	Bias   []float32
	LDBias int
	// Causal: query i sees the first First+i+1 keys alone. The others get probability and
	// gradient exactly 0.
	Causal bool
	First  int
	Out    gemm.Matrix // set by Forward: rows of E values
}

// check panics unless the slices hold what they should.
func (b *Block) check(a *Head) {
	if b.N < 1 || b.N > a.sizes.Queries {
		panic("kernel: attention: more queries than it was made for, or none")
	}
	vector.CheckMatrix("queries", b.N, a.sizes.Width, b.Q.Length(), b.Q.LD)
	vector.CheckMatrix("output", b.N, a.sizes.Width, b.Out.Length(), b.Out.LD)
	_ = b.LSE[:b.N]
	if b.Bits != nil {
		vector.CheckMatrix("dropout bits", b.N, (a.keys+31)/32, len(b.Bits), b.Words)
	}
	if b.Bias != nil {
		vector.CheckMatrix("bias", b.N, a.keys, len(b.Bias), b.LDBias)
	}
	if b.Causal && b.First < 0 {
		panic("kernel: attention: a causal block begins before the first query")
	}
}

// shift adds the bias to the scores of a block and takes away what a query must not see.
func (a *Head) shift(b *Block) {
	for i := 0; i < b.N && (b.Bias != nil || b.Causal); i++ {
		row := a.scores[i*a.stride:][:a.keys]
		if b.Bias != nil {
			vector.Add(row, row, b.Bias[i*b.LDBias:])
		}
		if b.Causal {
			vector.Fill(row[min(b.First+i+1, a.keys):], float32(math.Inf(-1)))
		}
	}
}

// Forward computes a block.
func (a *Head) Forward(b *Block) {
	b.check(a)
	if a.blocks != nil && b.N > fewQueries {
		a.blocks.forward(b)
		return
	}
	a.widenKeys()
	q, out := a.widen(a.floats.q, b.Q, b.N), a.result(b.Out)
	a.products.begin(2)
	a.products.scores(a.scores, q, b.N, a.alpha, ofKeys)
	a.shift(b)
	vector.SoftmaxRows(a.scores, a.stride, a.keys, b.Bits, b.Words, b.Scale, b.LSE[:b.N])
	a.products.weigh(out, a.scores, b.N, 1, ofValues)
	a.store(b.Out, out, b.N)
}

// Grads is where the gradients of a block go.
type Grads struct {
	DOut   gemm.Matrix // gradient of Out
	DQ     gemm.Matrix // rows of E values
	DK, DV []float32   // a row for each key
	LDDKV  int
	Add    bool // add to DK and DV instead of setting them
	// DBias receives the gradient of Bias, with its stride, added to what it holds; nil:
	// nobody asks.
	DBias []float32
}

// Backward computes the gradients of a block, whose Out is not used:
//
//	dV = P^T dO    dP = dO V^T    dS = P * (dP - rowsum(dP * P))
//	dQ = dS K / sqrt(E)           dK = dS^T Q / sqrt(E)
//
// where dropout is applied to the P of dV and to dP. P is made again from the scores
// and LSE; rowsum(dP * P) is summed over the fresh dP rather than as rowsum(dO * O)
// (Dao et al. 2022, section B.2), which would read the output from memory.
func (a *Head) Backward(b *Block, g *Grads) {
	b.Out = g.DQ // has the same rows
	b.check(a)
	vector.CheckMatrix("output gradient", b.N, a.sizes.Width, g.DOut.Length(), g.DOut.LD)
	vector.CheckMatrix("key gradient", a.keys, a.sizes.Width, len(g.DK), g.LDDKV)
	if g.DBias != nil {
		vector.CheckMatrix("bias gradient", b.N, a.keys, len(g.DBias), b.LDBias)
	}
	vector.CheckMatrix("value gradient", a.keys, a.sizes.Width, len(g.DV), g.LDDKV)
	if a.blocks != nil && b.N > fewQueries {
		a.blocks.backward(b, g)
		return
	}
	a.widenKeys()
	q, do, dq := a.widen(a.floats.q, b.Q, b.N), a.widen(a.floats.dout, g.DOut, b.N), a.result(g.DQ)
	dropped := a.scores
	if b.Bits != nil {
		dropped = a.dropped
	}
	p := a.products
	p.begin(5)
	p.scores(a.scores, q, b.N, a.alpha, ofKeys)
	a.shift(b)
	vector.ExpRows(a.scores, dropped, a.stride, a.keys, b.LSE[:b.N], b.Bits, b.Words, b.Scale)
	p.spread(g.DV, g.LDDKV, dropped, do, b.N, 1, g.Add)
	p.scores(a.grads, do, b.N, 1, ofValues)
	vector.SoftmaxGradRows(a.grads, a.scores, dropped, a.stride, b.N, a.keys)
	if g.DBias != nil {
		for i := range b.N {
			row := g.DBias[i*b.LDBias:][:a.keys]
			vector.Add(row, row, a.grads[i*a.stride:])
		}
	}
	p.weigh(dq, a.grads, b.N, a.alpha, ofKeys)
	a.store(g.DQ, dq, b.N)
	p.spread(g.DK, g.LDDKV, a.grads, q, b.N, a.alpha, g.Add)
}
