package main

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/kernel/gen/evex"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// panel is a pass over a panel of scores: rows are keys, lanes are queries. It goes down the rows of 16 queries, two
// rows at a time, since two keys share a word.
type panel struct {
	t       reg.Register
	name    string
	queries reg.GPVirtual // that are left
	column  reg.GPVirtual // bytes from the first query to those in work
	labels  int
}

// beginPanel starts a function whose argument is a passArgs.
func beginPanel(name, doc string) *panel {
	begin(name, "func(t *byte)", doc+" t points to a passArgs.")
	p := &panel{t: Load(Param("t"), GP64()), name: name, column: GP64()}
	p.queries = field(p.t, offQueries)
	XORQ(p.column, p.column)
	return p
}

// label returns a new one.
func (p *panel) label(s string) string {
	p.labels++
	return fmt.Sprintf("%s%d", s, p.labels)
}

// each writes the loop over vectors of queries.
func (p *panel) each(body func()) {
	top := p.label("queries")
	Label(top)
	body()
	ADDQ(Imm(vectorBytes), p.column)
	SUBQ(Imm(lanes), p.queries)
	CMPQ(p.queries, Imm(0))
	JG(LabelRef(top))
	end()
}

// at returns a pointer to the present column of the rows that a field points to.
func (p *panel) at(offset int) reg.GPVirtual {
	r := field(p.t, offset)
	ADDQ(p.column, r)
	return r
}

// halvesAt is at for rows of halves.
func (p *panel) halvesAt(offset int) reg.GPVirtual {
	r, c := field(p.t, offset), GP64()
	MOVQ(p.column, c)
	SHRQ(Imm(1), c)
	ADDQ(c, r)
	return r
}

// down writes the loop over the keys: pair is called for two of them at a time and last for one that is left.
func (p *panel) down(pair, last func()) {
	top, rest, done := p.label("pair"), p.label("last"), p.label("done")
	n := field(p.t, offKeys)
	SUBQ(Imm(2), n)
	JL(LabelRef(rest))
	Label(top)
	pair()
	SUBQ(Imm(2), n)
	JGE(LabelRef(top))
	Label(rest)
	TESTQ(U32(1), n)
	JZ(LabelRef(done))
	last()
	Label(done)
}

// dropout is the state of the bits of 16 queries: words holds those of 32 keys, and bit the one of the present key.
type dropout struct {
	p                *panel
	words, bit, from reg.VecPhysical
	at               reg.GPVirtual // words of the first of the queries
	left             reg.GPVirtual // pairs of keys until the next words
	valid            reg.OpmaskVirtual
}

// dropout begins the bits of the queries in work.
func (p *panel) dropout(words, bit, from reg.VecPhysical) *dropout {
	d := &dropout{p: p, words: words, bit: bit, from: from, at: field(p.t, offBits), left: GP64()}
	stride, skip, n, most := field(p.t, offBitsStride), GP64(), GP64(), GP64()
	VPBROADCASTD(stride.As32(), from)
	VPMULLD(increasing(), from, from)
	MOVQ(p.column, skip)
	SHRQ(Imm(2), skip)
	IMULQ(stride, skip)
	ADDQ(skip, d.at)
	MOVQ(U32(lanes), most)
	MOVQ(p.queries, n)
	CMPQ(n, most)
	CMOVQGT(most, n)
	d.valid = firstLanes(n)
	MOVQ(U32(1), d.left)
	return d
}

// next gets the words of the next 32 keys where it is their turn; it comes before each pair of keys.
func (d *dropout) next() {
	have, k := d.p.label("have"), K()
	DECQ(d.left)
	JNZ(LabelRef(have))
	KMOVW(d.valid, k) // the instruction clears its mask
	VPXORD(d.words, d.words, d.words)
	VPGATHERDD(VM(d.at, d.from), k, d.words)
	VPBROADCASTD(table("attend00000001", func(int) uint32 { return 1 }), d.bit)
	ADDQ(Imm(4), d.at)
	MOVQ(U32(16), d.left)
	Label(have)
}

// mask returns the lanes that the present key keeps and goes to the next key.
func (d *dropout) mask() reg.OpmaskVirtual {
	k := K()
	VPTESTMD(d.bit, d.words, k)
	VPADDD(d.bit, d.bit, d.bit)
	return k
}

// VM is a vector of addresses.
func VM(base reg.Register, index reg.VecPhysical) Mem { return Mem{Base: base, Index: index, Scale: 1} }

// storeRows stores halves of two keys, the low ones first, at two rows of halves. both is kept.
func storeRows(both reg.VecPhysical, to, next reg.Register) {
	VMOVDQU(both.AsY(), Mem{Base: to})
	VEXTRACTI64X4(Imm(1), both, Mem{Base: next})
}

// pairWords brings halves of two keys together in words.
func pairWords(both, order reg.VecPhysical) { VPERMW(both, order, both) }

// round sets both to the halves of low and high.
func round(low, high, both reg.VecPhysical) { evex.VCVTNE2PS2BF16(low, high, both) }
