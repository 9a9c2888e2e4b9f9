package kernel

// scratch holds converted operands. It grows to the largest product and is then
// used again.
type scratch struct {
	f32  []float32
	bf16 []uint16
}

// floats returns n float32 values that hold anything.
func (s *scratch) floats(n int) []float32 {
	if cap(s.f32) < n {
		s.f32 = make([]float32, n)
	}
	return s.f32[:n]
}

// halves returns n bfloat16 values that hold anything.
func (s *scratch) halves(n int) []uint16 {
	if cap(s.bf16) < n {
		s.bf16 = make([]uint16, n)
	}
	return s.bf16[:n]
}

// operandScratch is the scratch of one product on one thread.
type operandScratch struct{ a, b scratch }

// mustConvert reports whether an operand of p has to be converted before direct.
func (e *Engine) mustConvert(p *Product) bool {
	return p.BF16 || p.A.BF16 != nil || p.B.BF16 != nil
}

// convertOperands replaces the operands of j that must be converted, on all threads.
func (e *Engine) convertOperands(j *job) {
	if !e.mustConvert(&j.Product) {
		return
	}
	rows, columns := j.storedA()
	j.A = e.convertParallel(j, &j.a, rows, columns, j.A)
	rows, columns = j.storedB()
	j.B = e.convertParallel(j, &j.b, rows, columns, j.B)
}

// convertParallel converts one operand into s.
func (e *Engine) convertParallel(j *job, s *scratch, rows, columns int, x Matrix) Matrix {
	j.from, j.to, j.columns = x, e.target(s, rows, columns), columns
	e.For(rows, max(1, leastConverted/max(1, columns)), j.convert)
	x = j.to
	j.from, j.to = Matrix{}, Matrix{}
	return x
}

// leastConverted is the number of values worth a thread.
const leastConverted = 1 << 14

// convertPart converts rows lo to hi of the operand in progress.
func (e *Engine) convertPart(_, lo, hi int) {
	j := &e.job
	convertRows(j.to.from(lo*j.to.LD), j.from.from(lo*j.from.LD), hi-lo, j.columns, j.BF16)
}

// convertSerial is convertOperands on this thread.
func (e *Engine) convertSerial(p *Product, w *operandScratch) {
	rows, columns := p.storedA()
	a := e.target(&w.a, rows, columns)
	convertRows(a, p.A, rows, columns, p.BF16)
	rows, columns = p.storedB()
	b := e.target(&w.b, rows, columns)
	convertRows(b, p.B, rows, columns, p.BF16)
	p.A, p.B = a, b
}

// target returns where a converted operand goes.
func (e *Engine) target(s *scratch, rows, columns int) Matrix {
	return Matrix{F32: s.floats(rows * columns), LD: columns}
}

// convertRows sets the rows of dst to those of src. Where both are float32 the
// values are rounded to bfloat16 if asked.
func convertRows(dst, src Matrix, rows, columns int, round bool) {
	for i := range rows {
		d, s := i*dst.LD, i*src.LD
		switch {
		case src.BF16 != nil && dst.BF16 != nil:
			copy(dst.BF16[d:d+columns], src.BF16[s:s+columns])
		case src.BF16 != nil:
			FromBF16(dst.F32[d:d+columns], src.BF16[s:s+columns])
		case dst.BF16 != nil:
			ToBF16(dst.BF16[d:d+columns], src.F32[s:s+columns])
		case round:
			roundBF16(dst.F32[d:d+columns], src.F32[s:s+columns])
		default:
			copy(dst.F32[d:d+columns], src.F32[s:s+columns])
		}
	}
}
