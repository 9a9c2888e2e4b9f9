package gemm

// Plain is the matrix product in Go without assembly: the fallback of the
// builtin backend and the reference of the self-test.
type Plain struct{}

// Builtin returns the built-in product for the instruction set in use.
func Builtin() Backend {
	if t := New(); t != nil {
		return t
	}
	return Plain{}
}

// Info implements gemm.Backend: it has no version and comes from no file.
func (Plain) Info() (version, file string) { return "", "" }

// SGEMM implements gemm.Backend. Every element of C sums its products in the
// order of k.
func (Plain) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	ai, ap := lda, 1 // strides of op(A) along m and k
	if transA {
		ai, ap = 1, lda
	}
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if transB {
			plainRowDot(row, a[i*ai:], ap, k, alpha, b, ldb, beta)
		} else {
			plainRowAxpy(row, a[i*ai:], ap, k, alpha, b, ldb, beta)
		}
	}
}

// plainRowDot sets row[j] = alpha*sum_p a[p*ap]*b[j*ldb+p] + beta*row[j].
func plainRowDot(row, a []float32, ap, k int, alpha float32, b []float32, ldb int, beta float32) {
	for j := range row {
		var s float32
		for p, v := range b[j*ldb : j*ldb+k] {
			s += a[p*ap] * v
		}
		if beta == 0 {
			row[j] = alpha * s
		} else {
			row[j] = alpha*s + beta*row[j]
		}
	}
}

// plainRowAxpy sets row[j] = alpha*sum_p a[p*ap]*b[p*ldb+j] + beta*row[j], going
// along the rows of B, which lie in one piece.
func plainRowAxpy(row, a []float32, ap, k int, alpha float32, b []float32, ldb int, beta float32) {
	ScaleRow(row, beta)
	p := 0
	for ; p+4 <= k; p += 4 {
		x0, x1, x2, x3 := alpha*a[p*ap], alpha*a[(p+1)*ap], alpha*a[(p+2)*ap], alpha*a[(p+3)*ap]
		b0 := b[p*ldb:][:len(row)]
		b1 := b[(p+1)*ldb:][:len(row)]
		b2 := b[(p+2)*ldb:][:len(row)]
		b3 := b[(p+3)*ldb:][:len(row)]
		for j := range row {
			row[j] = row[j] + x0*b0[j] + x1*b1[j] + x2*b2[j] + x3*b3[j]
		}
	}
	for ; p < k; p++ {
		x := alpha * a[p*ap]
		for j, v := range b[p*ldb:][:len(row)] {
			row[j] += x * v
		}
	}
}

// ScaleRow multiplies row by beta; a beta of 0 does not read it.
func ScaleRow(row []float32, beta float32) {
	switch beta {
	case 0:
		clear(row)
	case 1:
	default:
		for j := range row {
			row[j] *= beta
		}
	}
}
