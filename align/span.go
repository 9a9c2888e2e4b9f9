package align

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"gonum.org/v1/gonum/mat"
)

// Span returns the number of directions in which rows differ, and the largest number that so many
// rows of that width can have. It looks at 256 rows at most, evenly spaced. It fails
// where there are no rows.
func Span(e *compute.Engine, s Side, r Rows) (directions, possible int, err error) {
	if r.Rows() < 1 || r.Width() < 1 {
		return 0, 0, fmt.Errorf("align: %d rows of %d columns of the %ss have no directions: want at least one of each",
			r.Rows(), r.Width(), s)
	}
	some := Select(r, spread(r.Rows(), 256))
	x, err := readAll(e, s, some)
	if err != nil {
		return 0, 0, err
	}
	n, d := some.Rows(), r.Width()
	rows := mat.NewDense(n, d, nil)
	for k := range d {
		mean := 0.0
		for i := range n {
			mean += float64(x[i*d+k])
		}
		mean /= float64(n) // of rows that are all the same exactly these
		for i := range n {
			rows.Set(i, k, float64(x[i*d+k])-mean)
		}
	}
	var gram mat.SymDense
	gram.SymOuterK(1/float64(n), rows)
	if mat.Trace(&gram) == 0 {
		return 0, min(n-1, d), nil
	}
	found, err := decompose(&gram)
	if err != nil {
		return 0, 0, err
	}
	return len(found.values), min(n-1, d), nil
}
