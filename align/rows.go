package align

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
)

// Rows is a table of rows of equal width, such as a *features.Matrix. Row may be called by
// several goroutines.
type Rows interface {
	Rows() int
	Width() int
	Row(i int, dst []float32) error // reads row i into dst (Width)
}

// Table is rows in memory. Numbers that are not whole rows are an error of Row.
type Table struct {
	Data []float32 // (n, D), row by row
	D    int
}

var _ Rows = Table{}

// Rows returns n.
func (t Table) Rows() int { return len(t.Data) / max(1, t.D) }

// Width returns D.
func (t Table) Width() int { return t.D }

// Row implements Rows.
func (t Table) Row(i int, dst []float32) error {
	if t.D < 1 || len(t.Data)%t.D != 0 {
		return fmt.Errorf("align: %d numbers are not rows of width %d: give whole rows", len(t.Data), t.D)
	}
	if i < 0 || i >= t.Rows() {
		return fmt.Errorf("align: there is no row %d among %d", i, t.Rows())
	}
	copy(dst, t.Data[i*t.D:][:t.D])
	return nil
}

// Select returns the rows of r at index, in that order. Rows may occur several times, as the
// image of five captions does.
func Select(r Rows, index []int32) Rows { return selection{r, index} }

type selection struct {
	from  Rows
	index []int32
}

func (s selection) Rows() int  { return len(s.index) }
func (s selection) Width() int { return s.from.Width() }
func (s selection) Row(i int, dst []float32) error {
	if i < 0 || i >= len(s.index) {
		return fmt.Errorf("align: there is no row %d among %d", i, len(s.index))
	}
	return s.from.Row(int(s.index[i]), dst)
}

// blockRows is the number of rows that are held at a time. Products sum so many in float32.
const blockRows = 512

// readBlock reads n rows from first on into dst (n, D) and tests that they are finite.
func readBlock(e *compute.Engine, side Side, r Rows, first, n int, dst []float32) error {
	d := r.Width()
	failed := make([]error, e.Threads())
	e.For(n, 64, func(worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := dst[i*d:][:d]
			if err := r.Row(first+i, row); err != nil {
				failed[worker] = fmt.Errorf("align: %ss: %w", side, err)
				return
			}
			if err := checkFinite(side, first+i, row); err != nil {
				failed[worker] = err
				return
			}
		}
	})
	for _, err := range failed { // in the order of the rows
		if err != nil {
			return err
		}
	}
	return nil
}

// checkFinite says where a row is not finite.
func checkFinite(side Side, i int, row []float32) error {
	for k, v := range row {
		if v-v != 0 {
			return fmt.Errorf("align: row %d of the %ss is not finite (got %v in column %d): compute it again or leave the pair out", i, side, v, k)
		}
	}
	return nil
}

// readAll reads all rows (n, D).
func readAll(e *compute.Engine, side Side, r Rows) ([]float32, error) {
	out := make([]float32, r.Rows()*r.Width())
	return out, readBlock(e, side, r, 0, r.Rows(), out)
}
