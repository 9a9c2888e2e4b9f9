package gemm

// A transpose goes down strips of so many columns, a few rows at a time: it reads whole lines of a few rows, and what
// it writes into the rows of the result makes lines.
const (
	stripColumns = 64
	stripRows    = 16
)

// Transpose sets dst[p*ldDst+j] = src[j*ld+p] for j < rows and p < n: fast for rows and n in multiples of 8.
func Transpose(dst []float32, ldDst int, src []float32, ld, rows, n int) {
	t := Shared()
	for p := 0; p < n; p += stripColumns {
		columns := min(stripColumns, n-p)
		for j := 0; j < rows; j += stripRows {
			to, from, m := dst[p*ldDst+j:], src[j*ld+p:], min(stripRows, rows-j)
			if t != nil {
				t.Transpose(to, ldDst, from, ld, m, columns)
			} else {
				plainTranspose(to, ldDst, from, ld, m, columns)
			}
		}
	}
}

func plainTranspose(dst []float32, ldDst int, src []float32, ld, rows, n int) {
	for p := range n {
		row := dst[p*ldDst:][:rows]
		for j := range row {
			row[j] = src[j*ld+p]
		}
	}
}
