package align

import (
	"fmt"
	"sort"

	"github.com/geoalign/geoalign/compute"
	"gonum.org/v1/gonum/mat"
)

// cloud is the rows of a side that are matched, on principal components.
type cloud struct {
	index []int32
	width int
	rows  *mat.Dense // (n, K), unit rows
	basis *mat.Dense // (D, K)
}

// cloud measures a side and puts its rows on principal components. It sets the side's mean.
func (o Wasserstein) cloud(e *compute.Engine, s Side, r Rows, m *Moments) (*cloud, error) {
	switch {
	case r == nil || r.Rows() < 3:
		return nil, fmt.Errorf("align: Wasserstein needs at least 3 rows of the %ss: add rows", s)
	case r.Width() < 1:
		return nil, fmt.Errorf("align: rows of the %ss have width %d: want at least one column", s, r.Width())
	}
	index := spread(r.Rows(), o.Rows)
	p := Pairs{}
	if s == Image {
		p.Image = Select(r, index)
	} else {
		p.Text = Select(r, index)
	}
	own := &Moments{Prepare: o.Prepare, Count: len(index)}
	if err := own.measure(e, p); err != nil {
		return nil, err
	}
	m.Mean[s] = own.Mean[s]
	spectrum, err := own.spectrum(s)
	if err != nil {
		return nil, err
	}
	rows, err := readAll(e, s, p.Of(s))
	if err != nil {
		return nil, err
	}
	own.prepareRows(e, s, rows)
	x := mat.NewDense(len(index), r.Width(), nil)
	for i, v := range rows {
		x.Set(i/r.Width(), i%r.Width(), float64(v))
	}
	c := &cloud{index: index, width: min(o.Components, len(spectrum.values)), basis: spectrum.vectors,
		rows: new(mat.Dense)}
	c.rows.Mul(x, c.basis)
	return c, nil
}

// cut keeps k components and scales the rows to unit length.
func (c *cloud) cut(k int) {
	n, _ := c.rows.Dims()
	d, _ := c.basis.Dims()
	c.rows = mat.DenseCopyOf(c.rows.Slice(0, n, 0, k))
	c.basis = mat.DenseCopyOf(c.basis.Slice(0, d, 0, k))
	for i := range n {
		row := c.rows.RowView(i).(*mat.VecDense)
		if norm := mat.Norm(row, 2); norm > 0 {
			row.ScaleVec(1/norm, row)
		}
	}
}

// quantiles is the length of a profile.
const quantiles = 64

// profiles returns of each row the sorted similarities with all rows, at quantiles.
func (c *cloud) profiles(e *compute.Engine) [][]float64 {
	n, _ := c.rows.Dims()
	var gram mat.Dense
	gram.Mul(c.rows, c.rows.T())
	out := make([][]float64, n)
	e.For(n, 8, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := append([]float64(nil), gram.RawRowView(i)...)
			sort.Float64s(row)
			out[i] = make([]float64, quantiles)
			for q := range quantiles {
				at := float64(q) / (quantiles - 1) * float64(n-1)
				k := min(int(at), n-2)
				out[i][q] = row[k] + (at-float64(k))*(row[k+1]-row[k])
			}
		}
	})
	return out
}

// profileSimilarity returns minus the squared distances of profiles (n, m), over their mean.
func profileSimilarity(e *compute.Engine, x, y *cloud) []float64 {
	a, b := x.profiles(e), y.profiles(e)
	out := make([]float64, len(a)*len(b))
	var sum float64
	for i := range a {
		for j := range b {
			var sq float64
			for q, v := range a[i] {
				sq += (v - b[j][q]) * (v - b[j][q])
			}
			out[i*len(b)+j] = -sq
			sum += sq
		}
	}
	if mean := sum / float64(len(out)); mean > 0 {
		for i := range out {
			out[i] /= mean
		}
	}
	return out
}
