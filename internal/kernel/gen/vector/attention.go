package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns is a loop over the vectors of a row that a kernel runs through several
// times: bounds and mask are made once.
type columns struct {
	b           *body
	whole, rest reg.Register // elements in whole vectors, and after them
	mask        reg.Register
}

// columns returns the loop over rows of n elements. It changes n.
func (b *body) columns(n reg.Register) columns {
	c := columns{b: b, whole: GP64(), rest: n}
	MOVQ(n, c.whole)
	ANDQ(Imm(uint64(b.lanes-1)), c.rest)
	c.mask = b.mask(c.rest, b.lanes)
	SUBQ(c.rest, c.whole)
	return c
}

// each calls write for one vector in a loop and once for what is left.
func (c columns) each(write func(s step)) {
	i, top, rest, end := GP64(), c.b.label("vector"), c.b.label("rest"), c.b.label("end")
	XORQ(i, i)
	Label(top)
	CMPQ(i, c.whole)
	JGE(LabelRef(rest))
	write(step{b: c.b, lanes: c.b.lanes, i: i})
	ADDQ(Imm(uint64(c.b.lanes)), i)
	JMP(LabelRef(top))
	Label(rest)
	TESTQ(c.rest, c.rest)
	JE(LabelRef(end))
	write(step{b: c.b, lanes: c.b.lanes, i: i, mask: c.mask})
	Label(end)
}

// spread returns a vector with the first lane of x in each.
func (b *body) spread(x reg.Register) reg.VecVirtual {
	v := b.vec()
	VBROADCASTSS(x, v)
	return v
}

// rows writes a loop over the rows of matrices; advance holds pointers and what each
// row adds to them. There is at least one row.
func (b *body) rows(count reg.Register, write func(), advance ...[2]reg.Register) {
	top := b.label("row")
	Label(top)
	write()
	for _, a := range advance {
		ADDQ(a[1], a[0])
	}
	DECQ(count)
	JNZ(LabelRef(top))
}

// attention writes the passes over rows of scores that lie in a cache.
func attention() {
	kernel("softmaxRowsVec", "func(s *float32, stride, rows, n int, bits *int32, bitsStride int, scale float32, stats *float32)",
		"replaces each row by exp(s - top) * scale / sum, by 0 where the bit is zero, and writes top and sum; strides are in bytes.", func(b *body) {
			s, stride, rows, stats := pointer("s"), pointer("stride"), pointer("rows"), pointer("stats")
			bitsStride, mask := pointer("bitsStride"), b.dropoutMask()
			b.expConstants(true)
			cols := b.columns(pointer("n"))
			b.rows(rows, func() {
				tops := b.minusInf(1)
				cols.each(func(t step) { t.highest(t.load(s), tops[0]) })
				top := b.fold(tops, VMAXPS)
				VMOVSS(top, Mem{Base: stats})
				shift, sums := b.spread(top), b.zeros(1)
				cols.each(func(t step) {
					v := t.load(s)
					VSUBPS(shift, v, v)
					v = b.exp(v, true)
					t.store(v, s)
					t.accumulate(v, sums[0])
				})
				sum, factor := b.fold(sums, VADDPS), XMM()
				VMOVSS(sum, Mem{Base: stats, Disp: floatSize})
				scale, err := Param("scale").Resolve()
				if err != nil {
					panic(err)
				}
				VMOVSS(scale.Addr, factor)
				VDIVSS(sum, factor, factor)
				mask.scale = b.spread(factor)
				plain, end := b.label("plain"), b.label("done")
				TESTQ(mask.bits, mask.bits)
				JE(LabelRef(plain))
				cols.each(func(t step) { t.store(mask.apply(t, t.load(s)), s) })
				ADDQ(bitsStride, mask.bits)
				JMP(LabelRef(end))
				Label(plain)
				cols.each(func(t step) {
					v := t.load(s)
					VMULPS(mask.scale, v, v)
					t.store(v, s)
				})
				Label(end)
				ADDQ(Imm(2*floatSize), stats)
			}, [2]reg.Register{s, stride})
			b.done()
		})
	kernel("expRowsVec", "func(p, dropped *float32, stride, rows, n int, lse *float32, bits *int32, bitsStride int, scale float32)",
		"sets p = exp(p - lse) and, unless bits is nil, dropped = scale * p where the bit is one and 0 elsewhere; strides are in bytes.", func(b *body) {
			p, dropped, stride, rows, lse := pointer("p"), pointer("dropped"), pointer("stride"), pointer("rows"),
				pointer("lse")
			bitsStride, mask := pointer("bitsStride"), b.dropoutMask()
			mask.scale = b.scalar("scale")
			b.expConstants(true)
			cols := b.columns(pointer("n"))
			b.rows(rows, func() {
				shift := b.vec()
				VBROADCASTSS(Mem{Base: lse}, shift)
				plain, end := b.label("plain"), b.label("done")
				row := func(drop bool) {
					cols.each(func(t step) {
						v := t.load(p)
						VSUBPS(shift, v, v)
						v = b.exp(v, true)
						t.store(v, p)
						if drop {
							t.store(mask.apply(t, v), dropped)
						}
					})
				}
				TESTQ(mask.bits, mask.bits)
				JE(LabelRef(plain))
				row(true)
				ADDQ(bitsStride, mask.bits)
				JMP(LabelRef(end))
				Label(plain)
				row(false)
				Label(end)
				ADDQ(Imm(floatSize), lse)
			}, [2]reg.Register{p, stride}, [2]reg.Register{dropped, stride})
			b.done()
		})
	kernel("softmaxGradRowsVec", "func(ds, p, dropped *float32, stride, rows, n int)",
		"sets ds = dropped*ds - p * sum dropped*ds for each row; the stride is in bytes.", func(b *body) {
			ds, p, dropped, stride, rows := pointer("ds"), pointer("p"), pointer("dropped"), pointer("stride"),
				pointer("rows")
			cols := b.columns(pointer("n"))
			b.rows(rows, func() {
				sums := b.zeros(1)
				cols.each(func(t step) { // lanes beyond the end are zero
					v, w := t.load(ds), t.load(dropped)
					VMULPS(w, v, v)
					t.store(v, ds)
					VADDPS(v, sums[0], sums[0])
				})
				sum := b.spread(b.fold(sums, VADDPS))
				cols.each(func(t step) {
					v, w := t.load(ds), t.load(p)
					VFNMADD231PS(sum, w, v)
					t.store(v, ds)
				})
			}, [2]reg.Register{ds, stride}, [2]reg.Register{p, stride}, [2]reg.Register{dropped, stride})
			b.done()
		})
	kernel("dotRowsVec", "func(dst *float32, dstStride int, x *float32, stride, rows, n int, y *float32, scale float32)",
		"sets dst[i] = scale * sum x[i]*y for rows of x; strides are in bytes.", func(b *body) {
			dst, x, stride, rows, y := pointer("dst"), pointer("x"), pointer("stride"), pointer("rows"), pointer("y")
			dstStride := pointer("dstStride")
			p, err := Param("scale").Resolve()
			if err != nil {
				panic(err)
			}
			scale := XMM()
			VMOVSS(p.Addr, scale)
			cols := b.columns(pointer("n"))
			b.rows(rows, func() {
				sums := b.zeros(1)
				cols.each(func(t step) { VFMADD231PS(t.load(y), t.load(x), sums[0]) })
				sum := b.fold(sums, VADDPS)
				VMULSS(scale, sum, sum)
				VMOVSS(sum, Mem{Base: dst})
			}, [2]reg.Register{x, stride}, [2]reg.Register{dst, dstStride})
			b.done()
		})
}
