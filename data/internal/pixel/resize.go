package pixel

import "fmt"

// CoefBits is the precision of the filter weights of a resize: 8 bits of pixel and
// 2 bits for the overshoot of the filter leave 22 of 32.
const CoefBits = 22

// Taps are the filter weights of one axis: output i is the weighted sum of the
// inputs First[i] ... with the Num[i] weights from Coef[i*Size] on.
type Taps struct {
	In, Out, Size int
	First, Num    []int32
	Coef          []int32
}

// Mirror reverses the outputs.
func (t *Taps) Mirror() {
	for i, j := 0, t.Out-1; i < j; i, j = i+1, j-1 {
		t.First[i], t.First[j] = t.First[j], t.First[i]
		t.Num[i], t.Num[j] = t.Num[j], t.Num[i]
		a, b := t.Coef[i*t.Size:][:t.Size], t.Coef[j*t.Size:][:t.Size]
		for k := range a {
			a[k], b[k] = b[k], a[k]
		}
	}
}

// RowFilter applies taps along rows. The zero value is ready for Set.
type RowFilter struct {
	taps    *Taps
	program []int32
	blocks  int  // of a row program; 0: the plain path or a shrink program
	shrinks bool // the program is one of shrinkRow
}

// Set makes f apply t, which must not change while f is in use.
func (f *RowFilter) Set(t *Taps) {
	f.taps, f.blocks, f.shrinks = t, 0, false
	if t.In <= 0 || t.Out <= 0 {
		return
	}
	switch {
	case hasWide:
		f.compile(16, 64, 1)
	case hasAVX2:
		f.compile(8, 16, 2)
	}
	if hasAVX2 && f.blocks == 0 && t.In > 2*t.Out {
		f.compileShrink()
	}
}

// compile writes the program of the vector kernels (gen/resize.go) for blocks of
// lanes bytes of output, each read through parts windows. Where a window is too
// small (strong shrinking, tiny images) there is none.
func (f *RowFilter) compile(lanes, window, parts int) {
	t := f.taps
	bytesOut, bytesIn := 3*t.Out, 3*t.In
	if bytesOut < lanes || bytesIn < window {
		return
	}
	f.program = f.program[:0]
	blocks := (bytesOut + lanes - 1) / lanes
	width := lanes / parts
	for b := range blocks {
		at := min(b*lanes, bytesOut-lanes) // the last block overlaps the one before
		n := int32(0)
		for p := at / 3; p <= (at+lanes-1)/3; p++ {
			n = max(n, t.Num[p])
		}
		if int(n) > t.In {
			return
		}
		// With the same number of taps for all, those at the right edge begin
		// earlier, with weights of zero.
		limit := int32(t.In) - n
		// The last window of every part must end within the row.
		most := bytesIn - window - 3*int(n-1)
		if most < 0 {
			return
		}
		head := len(f.program)
		f.program = append(f.program, 0, 0, n, int32(at))
		for part := range parts {
			lo, hi := bytesIn, 0
			for l := range width {
				o := at + part*width + l
				from := 3*int(min(t.First[o/3], limit)) + o%3
				lo, hi = min(lo, from), max(hi, from)
			}
			base := min(lo, most)
			if hi-base >= window {
				return
			}
			f.program[head+part] = int32(base)
			for l := range width {
				o := at + part*width + l
				from := 3*int(min(t.First[o/3], limit)) + o%3
				// The set bits make VPSHUFB write zeros to the upper bytes.
				const upper = -1 << 31 >> 8 // 0xff800000
				f.program = append(f.program, int32(from-base)|upper|0x808000)
			}
		}
		weights := len(f.program)
		f.program = append(f.program, make([]int32, int(n)*lanes)...)
		for l := range lanes {
			p := (at + l) / 3
			skip := t.First[p] - min(t.First[p], limit)
			for j, c := range t.Coef[p*t.Size:][:t.Num[p]] {
				f.program[weights+(int(skip)+j)*lanes+l] = c
			}
		}
	}
	f.blocks = blocks
}

// compileShrink writes the program of shrinkRow.
func (f *RowFilter) compileShrink() {
	t, lanes := f.taps, 8
	if hasWide {
		lanes = 16
	}
	pixels := lanes / 4 // of a step
	f.program = f.program[:0]
	for i, first := range t.First {
		k := t.Coef[i*t.Size:][:t.Num[i]]
		steps := (len(k) + pixels - 1) / pixels
		f.program = append(f.program, 3*first, int32(steps))
		at := len(f.program)
		f.program = append(f.program, make([]int32, steps*lanes)...)
		for j, c := range k {
			w := f.program[at+j/pixels*lanes+j%pixels*3:]
			w[0], w[1], w[2] = c, c, c
		}
	}
	f.shrinks = true
}

// Apply filters rows of a picture: row y of In pixels begins at src[y*stride], its
// result of Out pixels at dst[3*Out*y]. It may write a byte of dst behind the last one.
func (f *RowFilter) Apply(dst, src []uint8, rows, stride int) {
	t := f.taps
	out := 3 * t.Out
	if rows <= 0 {
		return
	}
	if len(dst) < rows*out || len(src) < (rows-1)*stride+3*t.In {
		panic(fmt.Sprintf("pixel: %d rows of %d to %d pixels need more than %d and %d bytes", rows, t.In, t.Out,
			len(src), len(dst)))
	}
	first := 0
	if f.shrinks {
		// The kernel reads up to 13 bytes behind a row and writes one.
		for ; first < rows && first*stride+3*t.In+13 <= len(src) && (first+1)*out < len(dst); first++ {
			shrinkRow(&dst[first*out], &src[first*stride], &f.program[0], t.Out)
		}
	}
	for y := first; y < rows; y += 2 {
		z := min(y+1, rows-1) // an odd last row is done twice
		if f.blocks > 0 {
			filterRows(&dst[y*out], &dst[z*out], &src[y*stride], &src[z*stride], &f.program[0], f.blocks)
			continue
		}
		filterRowPlain(t, dst[y*out:][:out], src[y*stride:][:3*t.In])
		if z > y {
			filterRowPlain(t, dst[z*out:][:out], src[z*stride:][:3*t.In])
		}
	}
}

func filterRowPlain(t *Taps, out, in []uint8) {
	for i := 0; i < t.Out; i++ {
		k := t.Coef[i*t.Size:][:t.Num[i]]
		r, g, b := int32(1<<(CoefBits-1)), int32(1<<(CoefBits-1)), int32(1<<(CoefBits-1))
		px := in[3*t.First[i]:][:3*len(k)]
		for j, c := range k {
			p := px[3*j : 3*j+3 : 3*j+3]
			r += c * int32(p[0])
			g += c * int32(p[1])
			b += c * int32(p[2])
		}
		o := out[3*i : 3*i+3 : 3*i+3]
		o[0], o[1], o[2] = clip8(r), clip8(g), clip8(b)
	}
}

// MixRows sets dst to the sum of the rows of src, each len(dst) bytes and stride
// apart, weighted by k and rounded. sums is scratch space that it returns.
func MixRows(dst, src []uint8, stride int, k, sums []int32) []int32 {
	n := len(dst)
	if len(k) == 0 || n == 0 {
		return sums
	}
	if len(src) < (len(k)-1)*stride+n {
		panic(fmt.Sprintf("pixel: %d rows of %d bytes, %d apart, need more than %d bytes", len(k), n, stride, len(src)))
	}
	switch {
	case hasWide && n >= least:
		mixRowsAVX512(&dst[0], &src[0], n, stride, &k[0], len(k))
	case hasAVX2 && n >= least:
		mixRowsAVX2(&dst[0], &src[0], n, stride, &k[0], len(k))
	default:
		return mixRowsPlain(dst, src, stride, k, sums)
	}
	return sums
}

func mixRowsPlain(dst, src []uint8, stride int, k, sums []int32) []int32 {
	n := len(dst)
	if len(k) == 4 {
		r0, r1, r2, r3 := src[:n], src[stride:][:n], src[2*stride:][:n], src[3*stride:][:n]
		k0, k1, k2, k3 := k[0], k[1], k[2], k[3]
		for i := range dst {
			dst[i] = clip8(1<<(CoefBits-1) + k0*int32(r0[i]) + k1*int32(r1[i]) + k2*int32(r2[i]) + k3*int32(r3[i]))
		}
		return sums
	}
	if cap(sums) < n {
		sums = make([]int32, n)
	}
	sums = sums[:n]
	for i := range sums {
		sums[i] = 1 << (CoefBits - 1)
	}
	for j, c := range k {
		for i, v := range src[j*stride:][:n] {
			sums[i] += c * int32(v)
		}
	}
	for i, v := range sums {
		dst[i] = clip8(v)
	}
	return sums
}

// clip8 turns a fixed-point sum into a byte.
func clip8(v int32) uint8 {
	v >>= CoefBits
	if uint32(v) > 255 {
		if v < 0 {
			return 0
		}
		return 255
	}
	return uint8(v)
}
