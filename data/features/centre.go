package features

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// centreRows is how many rows of a pool its mean is taken of: more do not change it.
const centreRows = 1 << 16

// Centre is the mean of rows (D). Rows minus their mean, brought to unit length, are told apart by
// cosines that a direction common to all of them would drown. The zero value changes nothing.
type Centre []float32

// Apply subtracts the mean from row (D) and brings it to unit length; a row that is the mean
// becomes zero.
func (c Centre) Apply(row []float32) {
	if c == nil {
		return
	}
	for i, m := range c {
		row[i] -= m
	}
	if n := math.Sqrt(vector.SumSq(row)); n > 0 {
		vector.Scale(row, float32(1/n), row)
	}
}

// each applies the mean to rows (n, D).
func (c Centre) each(rows []float32) {
	if c == nil {
		return
	}
	for d := len(c); len(rows) >= d; rows = rows[d:] {
		c.Apply(rows[:d])
	}
}

// Mean returns the mean of the rows, or of 65,536 evenly spaced ones. Rows that are not finite do
// not count.
func (p *Pool) Mean() (Centre, error) {
	n, count := p.Rows(), 0
	most := min(n, centreRows)
	row, sum := make([]float32, p.Width()), make([]float64, p.Width())
	for i := range most {
		if err := p.ReadRows(int(int64(i)*int64(n)/int64(most)), row); err != nil {
			return nil, err
		}
		if sq := vector.SumSq(row); math.IsNaN(sq) || math.IsInf(sq, 0) {
			continue
		}
		count++
		for j, v := range row {
			sum[j] += float64(v)
		}
	}
	mean := make(Centre, len(sum))
	for j, v := range sum {
		mean[j] = float32(v / float64(max(1, count)))
	}
	return mean, nil
}

// measure finds the means of both sides.
func (p *Pairs) measure() error {
	images, err := p.ImagePool()
	if err != nil {
		return err
	}
	texts, err := p.TextPool()
	if err != nil {
		return err
	}
	for i, pool := range []*Pool{images, texts} {
		if p.centres[i], err = pool.Mean(); err != nil {
			return err
		}
	}
	return nil
}

// Centres returns the means of the rows that training may see, nil where rows are not centred. A
// sample has the rows as they are in the files: what it is read by subtracts them.
func (p *Pairs) Centres() (images, texts Centre) { return p.centres[0], p.centres[1] }

// Centred returns all rows of both sides by their numbers in the files of the pairs, centred where
// PairsConfig says so.
func (p *Pairs) Centred() (images, texts batch.Pool) {
	return centred{p.images, p.centres[0]}, centred{p.texts, p.centres[1]}
}

// centred is a matrix whose rows are centred as they are read.
type centred struct {
	*Matrix
	centre Centre
}

// Row reads a row as Matrix.Row does and centres it.
func (m centred) Row(i int, dst []float32) error {
	err := m.Matrix.Row(i, dst)
	if err == nil {
		m.centre.Apply(dst)
	}
	return err
}
