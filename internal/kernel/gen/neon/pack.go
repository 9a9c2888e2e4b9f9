package main

// pack8 writes a function that transposes 8 rows of k8*8 values each into rows of 8 values that lie a stride apart.
func (w *writer) pack8() {
	w.function("gemmPack8", "func(dst *float32, dstStride int, src *float32, srcStride int, k8 int)", 40,
		"gemmPack8 sets dst[p*dstStride+j] = src[j*srcStride+p] for j < 8 and p < 8*k8; the strides are in bytes.")
	const dst, dstStride, src, srcStride, left, at = R(0), R(1), R(2), R(3), R(4), R(5)
	w.line("MOVD dst+0(FP), %v", dst)
	w.line("MOVD dstStride+8(FP), %v", dstStride)
	w.line("MOVD src+16(FP), %v", src)
	w.line("MOVD srcStride+24(FP), %v", srcStride)
	w.line("MOVD k8+32(FP), %v", left)
	w.label("pack")
	w.line("MOVD %v, %v", src, at)
	for j := range 8 {
		w.line("FLDPQ (%v), (F%d, F%d)", at, 2*j, 2*j+1)
		w.line("ADD %v, %v", srcStride, at)
	}
	for half := range 2 { // columns of the source
		const out, temp = V(16), V(24)
		for group := range 2 { // rows of it
			row := func(i int) V { return V(2*(4*group+i) + half) }
			t := temp + V(4*group)
			w.line("%s", ZIP1.of(t, row(0), row(2))) // a0 c0 a1 c1
			w.line("%s", ZIP1.of(t+1, row(1), row(3)))
			w.line("%s", ZIP2.of(t+2, row(0), row(2)))
			w.line("%s", ZIP2.of(t+3, row(1), row(3)))
			for i := range 4 {
				zip := ZIP1
				if i%2 != 0 {
					zip = ZIP2
				}
				w.line("%s", zip.of(out+V(2*i+group), t+V(i/2*2), t+V(i/2*2+1)))
			}
		}
		for i := range 4 {
			w.line("FSTPQ (F%d, F%d), (%v)", int(out)+2*i, int(out)+2*i+1, dst)
			w.line("ADD %v, %v", dstStride, dst)
		}
	}
	w.line("ADD $32, %v", src)
	w.line("SUBS $1, %v", left)
	w.line("BNE pack")
	w.line("RET")
}

// prefetch writes a function that asks for memory that is read soon.
func (w *writer) prefetch() {
	w.function("gemmPrefetch", "func(src *byte, stride, lines, rows int)", 32,
		"gemmPrefetch asks for lines of 64 bytes from the start of each row; the stride is in",
		"bytes. Addresses that do not exist do no harm.")
	const src, stride, lines, rows, at, left = R(0), R(1), R(2), R(3), R(4), R(5)
	w.line("MOVD src+0(FP), %v", src)
	w.line("MOVD stride+8(FP), %v", stride)
	w.line("MOVD lines+16(FP), %v", lines)
	w.line("MOVD rows+24(FP), %v", rows)
	w.label("row")
	w.line("MOVD %v, %v", src, at)
	w.line("MOVD %v, %v", lines, left)
	w.label("line")
	w.line("PRFM (%v), PLDL2KEEP", at)
	w.line("ADD $64, %v", at)
	w.line("SUBS $1, %v", left)
	w.line("BNE line")
	w.line("ADD %v, %v", stride, src)
	w.line("SUBS $1, %v", rows)
	w.line("BNE row")
	w.line("RET")
}
