package gemm

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/freelist"
)

// Int8 is the product of a matrix A of float32 with weights that were rounded to 8 bits when they were packed:
//
//	C[i][j] = float32(sum_k (a[i][k] - zero(A)[i]) b[k][j]) * scale(B)[j] * scale(A)[i]
//
// b are codes from -127 to 127: values divided by the scale of their column, the largest size in it divided by 127. a
// are codes from 0 to 255 of which zero(A)[i] stands for 0: activations lie to one side of it, those of a GELU almost
// wholly and normalised rows by a few large values, and such rows have codes twice as fine as those with a sign. Their
// scale is the width of the row's range, which includes 0, divided by 255, and A is rounded anew in every product.
// Rounding is to the nearest, ties to even. Sums are integers and exact, and what follows is computed in this order,
// so every processor gives the same bits. A row or column of sizes below 2^-100 counts as 0, one that holds NaN or an
// infinity makes its results NaN.
//
// A term is a word, as that of a Tiled: four codes of A and of B along k, for VPDPBUSD, which multiplies bytes without
// a sign by bytes with one; what zero(A) adds is subtracted by the sums of the columns of B. Where the processor has
// no product of bytes whose sums cannot overflow, a term is two codes of 16 bits, and A holds a - zero(A). All terms
// are summed in registers: an operand is a quarter as large as one of float32.
type Int8 struct {
	level    string
	lanes    int // columns of a vector; 0: plain Go
	width    int // columns of a panel
	word     int // bytes of a word: that of one code in plain Go
	terms    int // codes in it: 4, 2 or 1
	maxRows  int // largest tile height
	tiles    [][2]func(*byte)
	quantize func(dst []byte, row []float32) rowCodes
	work     freelist.List[int8Work]
}

// MostInt8 is the largest K of a product in int8: no sum of 255 x 127 overflows 32 bits.
const MostInt8 = 1 << 16

const (
	int8Limit  = 127 // of codes of B
	byteLimit  = 255 // of codes of A
	int8Group  = 112 // most rows of A that are rounded at once
	int8Tile   = 14  // no tile of products of codes has more rows
	int8Panel  = 32  // nor more columns
	int8Block  = 768 // most columns of a block of B
	int8Level2 = 768 << 10
	cacheLine  = 64
)

// int8Work is the memory of one product in progress.
type int8Work struct {
	codes  [int8Tile * (MostInt8 + cacheLine)]byte
	edge   [int8Tile * int8Panel]float32
	scales [int8Group]float32
	zeros  [int8Group]int32
	args   tileArgs
}

// rowCodes says what the codes of a row of A stand for: code - zero times scale. They are made by factor, 1 / scale.
type rowCodes struct {
	factor, scale float32
	zero          int32
}

// codes is a matrix of K x N as an Int8 reads it.
type codes struct {
	by     *Int8
	of     []byte    // panels, one after the other, of words along k
	scales []float32 // of the columns, in whole panels
	sums   []int32   // of the columns
}

// ready fills in what follows from the other fields.
func (t *Int8) ready() *Int8 {
	t.width = max(1, 2*t.lanes)
	t.maxRows = max(1, len(t.tiles))
	t.work.Make = func() *int8Work { return new(int8Work) }
	return t
}

// PlainInt8 returns the product in Go.
func PlainInt8() *Int8 {
	return (&Int8{word: 1, terms: 1, quantize: quantizeBytes}).ready()
}

// Info names the instructions that multiply, empty for none.
func (t *Int8) Info() string { return t.level }

// words returns the words of k codes.
func (t *Int8) words(k int) int { return (k + t.terms - 1) / t.terms }

// NewPacked implements Packer.
func (t *Int8) NewPacked(k, n int) *Packed {
	columns := (n + t.width - 1) / t.width * t.width
	return &Packed{K: k, N: n, columns: columns, codes: &codes{by: t, of: make([]byte, t.words(k)*t.word*columns),
		scales: make([]float32, columns), sums: make([]int32, columns)}}
}

// Panel implements Packer.
func (t *Int8) Panel() int { return t.width }

// Repack implements Packer: it rounds columns lo to hi of op(x), float32.
func (t *Int8) Repack(p *Packed, x Matrix, trans bool, lo, hi int) {
	c, column := p.codes, make([]float32, p.K)
	for j := lo; j < hi; j++ {
		for k := range column {
			at := k*x.LD + j
			if trans {
				at = j*x.LD + k
			}
			column[k] = x.F32[at]
		}
		factor, scale := codeScale(plainLargest(column))
		var sum int32
		for k, v := range column {
			code := plainCode(v, factor)
			sum += int32(code)
			t.put(c, p.K, k, j, code)
		}
		c.scales[j], c.sums[j] = scale, sum
	}
}

// put stores a code of column j.
func (t *Int8) put(c *codes, n, k, j int, code int8) {
	size := t.word / t.terms // bytes of a code
	word := (j/t.width*t.words(n)+k/t.terms)*t.width + j%t.width
	at := word*t.word + k%t.terms*size
	c.of[at] = byte(code)
	if size == 2 {
		c.of[at+1] = byte(code >> 7) // the sign, all ones or zeros
	}
}

// Multiply computes p, whose Packed is of an Int8, with M, N, K >= 1, Alpha 1, Beta 0 and an A of float32 that is not
// transposed.
func (t *Int8) Multiply(p *Product) {
	w := t.work.Take()
	stride := t.words(p.K) * t.word
	if stride%512 == 0 { // as rowStride
		stride += cacheLine
	}
	group := min(int8Group, len(w.codes)/stride) / t.maxRows * t.maxRows
	columns := min(int8Block, max(1, int8Level2/(t.words(p.K)*t.word*t.width))*t.width)
	for i := 0; i < p.M; i += group {
		rows := min(group, p.M-i)
		for r := range rows {
			at := (i + r) * p.A.LD
			q := t.quantize(w.codes[r*stride:], p.A.F32[at:at+p.K])
			w.scales[r], w.zeros[r] = q.scale, q.zero
		}
		for j := 0; j < p.N; j += columns {
			n := min(columns, p.N-j)
			tiles := (rows + t.maxRows - 1) / t.maxRows
			height := (rows + tiles - 1) / tiles
			for r := 0; r < rows; r += height {
				t.row(w, p, stride, i, r, min(height, rows-r), j, n)
			}
		}
	}
	w.args = tileArgs{}
	t.work.Give(w)
}

// row computes columns j to j+n of so many rows from row r of the group on, which begins at row i.
func (t *Int8) row(w *int8Work, p *Product, stride, i, r, rows, j, n int) {
	if t.lanes == 0 {
		t.plainRow(w, p, stride, i, r, j, n)
	} else {
		t.panels(w, p, stride, i, r, rows, j, n)
	}
	for x := i + r; x < i+r+rows; x++ {
		p.finishRow(x, j, p.C[x*p.LDC+j:][:n])
	}
}

// panels computes the tiles of a row of them.
func (t *Int8) panels(w *int8Work, p *Product, stride, i, r, rows, j, n int) {
	c, args, words := p.Packed.codes, &w.args, t.words(p.K)
	*args = tileArgs{k: words, a: unsafe.Pointer(&w.codes[r*stride]), aRow: stride, aK: 4, bK: 4 * t.width,
		rows: unsafe.Pointer(&w.scales[r]), zeros: unsafe.Pointer(&w.zeros[r])}
	for q := 0; q < n; q += t.width {
		cols, at := min(t.width, n-q), p.PackedFrom+j+q
		args.b = unsafe.Pointer(&c.of[at*words*4])
		args.scales, args.sums = unsafe.Pointer(&c.scales[at]), unsafe.Pointer(&c.sums[at])
		vectors := (cols + t.lanes - 1) / t.lanes
		tile := t.tiles[rows-1][vectors-1]
		to := p.C[(i+r)*p.LDC+j+q:]
		if args.mask = 1<<cols - 1; t.lanes == 16 || cols == vectors*t.lanes {
			args.c, args.cRow = unsafe.Pointer(&to[0]), 4*p.LDC
			tile((*byte)(unsafe.Pointer(args)))
			continue
		}
		args.c, args.cRow = unsafe.Pointer(&w.edge[0]), 4*int8Panel
		tile((*byte)(unsafe.Pointer(args)))
		for x := range rows {
			copy(to[x*p.LDC:][:cols], w.edge[x*int8Panel:])
		}
	}
}

// plainRow is panels in Go, for one row.
func (t *Int8) plainRow(w *int8Work, p *Product, stride, i, r, j, n int) {
	c, scale, zero := p.Packed.codes, w.scales[r], w.zeros[r]
	a := w.codes[r*stride:][:p.K]
	for q := range n {
		column := p.PackedFrom + j + q
		var sum int32
		for k, b := range c.of[column*p.K:][:p.K] {
			sum += (int32(a[k]) - zero) * int32(int8(b))
		}
		p.C[(i+r)*p.LDC+j+q] = float32(float32(sum)*c.scales[column]) * scale
	}
}

// quantizeBytes rounds a row to bytes.
func quantizeBytes(dst []byte, row []float32) rowCodes {
	q := rangeCodes(plainRange(row))
	for k, v := range row {
		dst[k] = byte(q.code(v) + q.zero)
	}
	return q
}

// plainRange returns the bits of the largest value, those of 0 where there is none above it, and the bits that are the
// largest without a sign: those of the least value where one is below 0. NaN is beyond the infinities.
func plainRange(row []float32) (most int32, least uint32) {
	for _, v := range row {
		bits := math.Float32bits(v)
		most, least = max(most, int32(bits)), max(least, bits)
	}
	return most, least
}

// rangeCodes returns what the codes of values of a plainRange stand for.
func rangeCodes(most int32, least uint32) (q rowCodes) {
	high, low := math.Float32frombits(uint32(most)), math.Float32frombits(least)
	if least>>31 == 0 { // nothing is below 0
		low = 0
	}
	switch q.scale = high/byteLimit - low/byteLimit; {
	case !(q.scale <= math.MaxFloat32):
		return rowCodes{scale: float32(math.NaN())}
	case q.scale < 0x1p-100:
		return rowCodes{}
	}
	q.factor = 1 / q.scale
	q.zero = -q.code(low)
	return q
}

// code returns the code of v without the zero.
func (q rowCodes) code(v float32) int32 {
	return min(int32(math.RoundToEven(float64(float32(v*q.factor)))), byteLimit-q.zero)
}

// plainLargest returns the largest bits of the values without their signs: in their order NaN is above infinity, and
// that above all numbers.
func plainLargest(row []float32) (bits uint32) {
	for _, v := range row {
		bits = max(bits, math.Float32bits(v)&math.MaxInt32)
	}
	return bits
}

// codeScale returns the factor that makes codes of a column of B of which plainLargest is the largest, and the scale
// that makes values of codes.
func codeScale(largest uint32) (factor, scale float32) {
	switch x := math.Float32frombits(largest); {
	case !(x <= math.MaxFloat32):
		return 0, float32(math.NaN())
	case x < 0x1p-100:
		return 0, 0
	default:
		return int8Limit / x, x / int8Limit
	}
}

// plainCode returns the code of v of B.
func plainCode(v, factor float32) int8 {
	return int8(math.RoundToEven(float64(float32(v * factor))))
}
