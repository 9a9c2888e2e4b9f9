package bench

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
)

// poolRows is the number of rows of a pool that is made up.
const poolRows = 10000

// pool is random rows in memory.
type pool struct {
	width int
	rows  []float32 // (poolRows, width)
}

var _ batch.Pool = (*pool)(nil)

func newPool(width int) *pool {
	p := &pool{width: width, rows: make([]float32, poolRows*width)}
	fill(rand.New(rand.NewPCG(5, 6)), p.rows)
	return p
}

func (p *pool) Rows() int { return poolRows }

func (p *pool) Width() int { return p.width }

func (p *pool) Row(i int, dst []float32) error {
	copy(dst, p.rows[i*p.width:])
	return nil
}
