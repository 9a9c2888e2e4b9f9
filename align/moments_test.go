package align

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/geoalign/geoalign/internal/check"
)

// TestBlocks fits the same map from a stream of many blocks as from sums in float64.
func TestBlocks(t *testing.T) {
	e := engine(t)
	n := 3*blockRows + 7
	x := times(gauss(1, n, 6), mat.NewDense(6, 6, widen(gauss(2, 6, 6).Data)), 10)
	y := gauss(3, n, 4)
	m := check.Get(Measure(e, Pairs{x, y}, Prepare{}))(t)
	var prepared [2]*mat.Dense
	for s, table := range []Table{x, y} {
		rows := mat.NewDense(n, table.D, widen(table.Data))
		for k := range table.D {
			column := mat.Col(nil, k, rows)
			var mean float64
			for _, v := range column {
				mean += v / float64(n)
			}
			near(t, "mean", m.Mean[s][k:k+1], []float64{mean}, 1e-5)
			for i := range column {
				rows.Set(i, k, column[i]-mean)
			}
		}
		for i := range n {
			row := rows.RowView(i).(*mat.VecDense)
			row.ScaleVec(1/mat.Norm(row, 2), row)
		}
		prepared[s] = rows
	}
	var cross, own mat.Dense
	cross.Mul(prepared[0].T(), prepared[1])
	cross.Scale(1/float64(n), &cross)
	near(t, "cross", m.Cross.RawMatrix().Data, cross.RawMatrix().Data, 1e-6)
	own.Mul(prepared[0].T(), prepared[0])
	own.Scale(1/float64(n), &own)
	near(t, "own", mat.DenseCopyOf(m.Cov[Image]).RawMatrix().Data, own.RawMatrix().Data, 1e-6)
}
