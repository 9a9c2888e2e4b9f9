package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
)

// crossRows are the tokens of a side in a block of cross attention: sequences as long as they fit, or one.
const crossRows = 512

// crossBlock is a block of pairs, some sequences of the queries with some of the context. Tokens
// that take part are packed, so that one matrix product is that of all pairs of the block.
type crossBlock struct {
	*cross
	c        *exec.Call
	backward bool
	channels int
	span     [2]blockSpan
	packed   [4][]float32 // (rows, C) of each operand of rows
	products [2][]float32 // (rows of the queries, rows of the context) of each site
	gram     []float32    // G of each sequence of the context
	norms    []float32    // |q| of each row of the queries
	pairs    [][]float32  // memory of each thread

	// Of the backward pass: gradients of those, and of |q|^2 (sequences of the context, rows).
	dpacked  [4][]float32
	dproduct [2][]float32
	dgram    []float32
	dnorms   []float32

	product *gemm.Product   // on all threads
	serial  []*gemm.Product // on one
}

// blockSpan is the part of a block of one side.
type blockSpan struct {
	from, to int   // sequences
	starts   []int // the row at which each begins, and the end
}

func (s *blockSpan) rows() int { return s.starts[s.to-s.from] }

// of returns where a sequence begins and how many tokens it has.
func (s *blockSpan) of(i int) (at, n int) {
	at = s.starts[i-s.from]
	return at, s.starts[i-s.from+1] - at
}

// carve gives parts of memory away.
type carve struct {
	memory []float32
	used   int
}

func (m *carve) take(n int) []float32 {
	m.used += n
	if m.memory == nil {
		return nil
	}
	return m.memory[m.used-n : m.used : m.used]
}

// lay gives a block its memory.
func (b *crossBlock) lay(m *carve, threads int) {
	context := 1 - b.query
	q, k := b.most[b.query], b.most[context]
	table := func() (t [4][]float32) {
		for i := range b.rows {
			t[i] = m.take(b.most[b.of[i]] * b.channels)
		}
		return t
	}
	sites := func() (t [2][]float32) {
		t[attentionSite] = m.take(q * k)
		if t[similaritySite] = t[attentionSite]; !b.shared() {
			t[similaritySite] = m.take(q * k)
		}
		return t
	}
	grams := k * b.sides[context].len // k sequences of one token, or fewer longer ones
	b.packed, b.products, b.gram, b.norms = table(), sites(), m.take(grams), m.take(q)
	if b.backward {
		b.dpacked, b.dproduct, b.dgram, b.dnorms = table(), sites(), m.take(grams), m.take(q*b.sequences[context])
	}
	for range threads {
		b.pairs = append(b.pairs, m.take(b.pairFloats()))
	}
}

// block returns a block in memory.
func (x *cross) block(c *exec.Call, memory *carve, backward bool) *crossBlock {
	b := &crossBlock{cross: x, c: c, backward: backward, channels: c.In[0].Dim(1)}
	b.lay(memory, c.Engine.Threads())
	for k := range b.span {
		b.span[k].starts = make([]int, x.sequences[k]+1)
	}
	b.product = op.Product(c, false, true)
	for range b.pairs {
		b.serial = append(b.serial, op.Product(c, false, true))
	}
	return b
}

// run works on all blocks: prepare when sequences of the context are packed, work when queries are
// packed besides, and in the backward pass finish after the last queries. They are given the number
// of sequences of the context.
func (b *crossBlock) run(prepare, work, finish func(contexts int)) exec.Step {
	q, k := b.query, 1-b.query
	return func() error {
		for _, s := range b.sides {
			if err := s.check(b.c); err != nil {
				return err
			}
		}
		queries, contexts := b.c.In[q].Dim(0)/b.sides[q].len, b.c.In[k].Dim(0)/b.sides[k].len
		if b.backward {
			for i := range b.rows {
				clear(b.gradient(i))
			}
		}
		for i := 0; i < contexts; i = b.span[k].to {
			b.pack(k, i, contexts)
			prepare(b.span[k].to - i)
			for j := 0; j < queries; j = b.span[q].to {
				b.pack(q, j, queries)
				work(b.span[k].to - i)
				if b.backward {
					b.unpack(q)
				}
			}
			if b.backward {
				finish(b.span[k].to - i)
				b.unpack(k)
			}
		}
		return nil
	}
}

// clearSlopes clears the gradients of the products of the block and of |q|^2.
func (b *crossBlock) clearSlopes() {
	clear(b.dnorms)
	for _, d := range b.dproduct {
		clear(d[:b.span[0].rows()*b.span[1].rows()])
	}
}

// pack takes sequences of a side from i on, of n, into the block.
func (b *crossBlock) pack(side, i, n int) {
	s, span, most := b.sides[side], &b.span[side], b.most[side]
	span.from, span.to, span.starts[0] = i, i, 0
	for end := 0; span.to < n && span.to-i < b.sequences[side]; span.to++ {
		lo, hi := s.span(b.c, span.to)
		if end+hi-lo > most {
			break
		}
		for k := range b.rows {
			if b.of[k] == side {
				at := (span.to*s.len + lo) * b.channels
				copy(b.packed[k][end*b.channels:], b.c.In[k].F32[at:][:(hi-lo)*b.channels])
			}
		}
		end += hi - lo
		span.starts[span.to-i+1] = end
	}
	if side == b.query {
		for r := range span.rows() {
			b.norms[r] = float32(math.Sqrt(vector.SumSq(b.packed[side][r*b.channels:][:b.channels])))
		}
	}
	if b.backward {
		for k := range b.rows {
			if b.of[k] == side {
				clear(b.dpacked[k][:span.rows()*b.channels])
			}
		}
	}
}

// multiply makes the products of the block at each site.
func (b *crossBlock) multiply() {
	m, n := b.span[b.query].rows(), b.span[1-b.query].rows()
	if m == 0 || n == 0 {
		return
	}
	for site, operands := range b.sites {
		if site == similaritySite && b.shared() {
			continue
		}
		p := b.product
		p.TransA, p.TransB, p.Beta = false, true, 0
		p.M, p.N, p.K = m, n, b.channels
		p.A, p.B = b.matrix(b.packed[operands[b.query]]), b.matrix(b.packed[operands[1-b.query]])
		p.C, p.LDC = b.products[site], n
		b.c.Engine.Multiply(p)
	}
}

func (b *crossBlock) matrix(rows []float32) gemm.Matrix {
	return gemm.Matrix{F32: rows, LD: b.channels}
}

// grams makes G of sequences of the context, and clears its gradient.
func (b *crossBlock) grams(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		b.makeGram(worker, 1-b.query, i, b.gram, b.dgram)
	}
}

// makeGram makes the products of the tokens of sequence i of a side with each other, and clears
// their gradient.
func (b *crossBlock) makeGram(worker, side, i int, gram, dgram []float32) {
	at, n := b.span[side].of(b.span[side].from + i)
	if n == 0 {
		return
	}
	rows := b.matrix(b.packed[side][at*b.channels:])
	p := b.serial[worker]
	p.TransB, p.Alpha, p.Beta = true, 1, 0
	p.M, p.N, p.K = n, n, b.channels
	p.A, p.B, p.C, p.LDC = rows, rows, b.gramIn(side, gram, i), n
	b.c.Engine.MultiplySerial(p)
	if b.backward {
		clear(b.gramIn(side, dgram, i))
	}
}

// gramOf returns the matrix of sequence i of the context of a block.
func (b *crossBlock) gramOf(of []float32, i int) []float32 { return b.gramIn(1-b.query, of, i) }

// gramIn returns the matrix of sequence i of a side of a block.
func (b *crossBlock) gramIn(side int, of []float32, i int) []float32 {
	at, n := b.span[side].of(b.span[side].from + i)
	return of[at*b.sides[side].len:][:n*n]
}
