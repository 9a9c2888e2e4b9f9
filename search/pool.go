package search

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Pool is the N rows of D numbers that are searched. A *features.Matrix is one, what Memory
// returns another. Many goroutines call Row at once.
type Pool interface {
	Rows() int  // N
	Width() int // D
	// Row reads row i into dst (D). It fails where it cannot be read.
	Row(i int, dst []float32) error
}

// rowsReader is a pool that reads many rows faster than one by one. Numbers that are not finite
// are not errors of it.
type rowsReader interface {
	ReadRows(first int, dst []float32) error
}

// memory is a pool in memory.
type memory struct {
	x     []float32
	width int
}

// Memory returns the rows of x (N, width) as a pool. It reads x in place.
func Memory(x []float32, width int) (Pool, error) {
	if width < 1 || len(x)%width != 0 {
		return nil, fmt.Errorf("search: %d numbers are not rows of width %d: give whole rows", len(x), width)
	}
	return &memory{x, width}, nil
}

func (m *memory) Rows() int  { return len(m.x) / m.width }
func (m *memory) Width() int { return m.width }

func (m *memory) ReadRows(first int, dst []float32) error {
	copy(dst, m.x[first*m.width:])
	return nil
}

func (m *memory) Row(i int, dst []float32) error {
	copy(dst, m.x[i*m.width:(i+1)*m.width])
	return nil
}

// checkPool refuses a pool that cannot be searched.
func checkPool(p Pool) error {
	switch n, d := p.Rows(), p.Width(); {
	case d < 1:
		return fmt.Errorf("search: the pool's rows have width %d: want at least 1", d)
	case d > maxWidth:
		return fmt.Errorf("search: the pool's rows have width %d: at most %d can be searched", d, maxWidth)
	case n < 1:
		return fmt.Errorf("search: the pool is empty: give at least one row")
	case n > math.MaxInt32:
		return fmt.Errorf("search: the pool has %d rows: at most %d can be searched", n, math.MaxInt32)
	}
	return nil
}

// maxWidth bounds the width of rows: products of codes must have digits to spare.
const maxWidth = 1 << 16

// points reads rows of a pool as points, whose products rank them:
//
//	cosine  x / |x|     by  x . y
//	inner   x           by  x . y
//	l2      x - shift   by  x . y - |x|^2 / 2
//
// The shift is the median of some rows, column by column. Beside the lengths of rows that all lie far from the
// origin, the differences of their distances would be lost, and so they would be beside a mean that a single row far
// from the others has moved away from these.
type points struct {
	pool   Pool
	metric Metric
	shift  []float32 // (D) of l2, else nil
}

// shiftRows is how many rows the shift is the median of.
const shiftRows = 256

// newPoints checks pool and metric and finds the shift.
func newPoints(pool Pool, metric Metric) (points, error) {
	p := points{pool: pool, metric: metric}
	if err := metric.Check(); err != nil {
		return p, err
	}
	if err := checkPool(pool); err != nil || metric != L2 {
		return p, err
	}
	n, d := pool.Rows(), pool.Width()
	count := min(n, shiftRows)
	row, columns := make([]float32, d), make([]float32, d*count) // (D, count)
	for i := range count {
		j := spread(i, count, n)
		if err := pool.Row(j, row); err != nil {
			return p, err
		}
		if _, err := metric.checkRow(ofPool, j, row); err != nil {
			return p, err
		}
		for c, v := range row {
			columns[c*count+i] = v
		}
	}
	p.shift = make([]float32, d)
	for c := range d {
		column := columns[c*count : (c+1)*count]
		slices.Sort(column)
		p.shift[c] = column[count/2]
	}
	return p, nil
}

// spread returns sample i of count that are spread evenly over n rows, the first and the last
// among them.
func spread(i, count, n int) int {
	if count < 2 {
		return 0
	}
	return int(int64(i) * int64(n-1) / int64(count-1))
}

// What rows are of, in errors.
const (
	ofPool    = "pool"
	ofQueries = "queries"
)

// read sets dst (n, D) to the points of n rows of the pool from first on, and half (n), unless
// it is nil, to half their squared lengths.
func (p *points) read(first, n int, dst, half []float32) error {
	if err := readRows(p.pool, first, n, dst); err != nil {
		return err
	}
	return p.placeAll(first, n, dst, half)
}

// readRows sets dst (n, D) to n rows of a pool from first on, as they are stored.
func readRows(p Pool, first, n int, dst []float32) error {
	d := p.Width()
	if many, ok := p.(rowsReader); ok {
		return many.ReadRows(first, dst[:n*d])
	}
	for i := range n {
		if err := p.Row(first+i, dst[i*d:(i+1)*d]); err != nil {
			return err
		}
	}
	return nil
}

// placeAll makes points of n rows x (n, D) of the pool, the first of which is first, and sets half as read does.
func (p *points) placeAll(first, n int, x, half []float32) error {
	d := p.pool.Width()
	for i := range n {
		sq, err := p.place(ofPool, first+i, x[i*d:(i+1)*d])
		if err != nil {
			return err
		}
		if half != nil {
			half[i] = float32(sq / 2)
		}
	}
	return nil
}

// place makes a point of row i of what. It returns the squared length of the point, with the
// cosine that of the row.
func (p *points) place(what string, i int, row []float32) (float64, error) {
	if p.metric == L2 {
		vector.Sub(row, row, p.shift)
	}
	sq, err := p.metric.checkRow(what, i, row)
	if p.metric == Cosine && err == nil {
		toUnit(row, math.Sqrt(sq))
	}
	return sq, err
}

// toUnit brings a row of a length above 0 to length 1.
func toUnit(row []float32, length float64) {
	if scale := float32(1 / length); !math.IsInf(float64(scale), 0) {
		vector.Scale(row, scale, row)
		return
	}
	for c, v := range row {
		row[c] = float32(float64(v) / length)
	}
}

// queries checks the rows of x (Q, D) and returns their points and what place returns of them.
func (p *points) queries(x []float32) (at []float32, lengths []float64, err error) {
	d := p.pool.Width()
	if len(x) == 0 || len(x)%d != 0 {
		return nil, nil, fmt.Errorf("search: %d numbers are not queries of the width %d of the pool: give whole rows of one encoder's features", len(x), d)
	}
	at, lengths = append([]float32(nil), x...), make([]float64, len(x)/d)
	for i := range lengths {
		if lengths[i], err = p.place(ofQueries, i, at[i*d:(i+1)*d]); err != nil {
			return nil, nil, err
		}
	}
	return at, lengths, nil
}
