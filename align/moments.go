package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gonum.org/v1/gonum/mat"
)

// Prepare says what is done to rows for a fit. The zero value subtracts the mean of the pairs
// and scales the centred rows to unit length, so that no pair counts more than another. The
// lengths change the fit alone: where a map ends in cosines, it takes rows of any length, and
// its side stays one linear layer.
type Prepare struct {
	KeepMean   bool // do not subtract the mean
	KeepLength bool // do not scale to unit length
}

// Moments are the sums over pairs that linear methods are made of. They may be used for
// several fits.
type Moments struct {
	Prepare
	Count int              // N
	Mean  [2][]float64     // (D) and (E) of the rows, zeros with KeepMean
	Cov   [2]*mat.SymDense // (D, D) and (E, E), means of products of prepared rows
	Cross *mat.Dense       // (D, E), the same between the sides

	few     [2][]float32 // prepared rows (N, D) where there are fewer than columns
	spectra [2]*spectrum
}

// Measure reads all pairs twice, in blocks, and returns their moments.
func Measure(e *compute.Engine, p Pairs, prepare Prepare) (*Moments, error) {
	if err := p.check("a fit", 2); err != nil {
		return nil, err
	}
	m := &Moments{Prepare: prepare, Count: p.Len()}
	return m, m.measure(e, p)
}

// measure sets the moments of the sides that p has.
func (m *Moments) measure(e *compute.Engine, p Pairs) error {
	for s := range m.Mean {
		if p.Of(Side(s)) == nil {
			continue
		}
		if err := m.means(e, Side(s), p.Of(Side(s))); err != nil {
			return err
		}
	}
	return m.products(e, p)
}

// means sets the mean of a side. It sums in float64, so that rows that are all the same become zeros: what float32
// rounds would be scaled to unit length.
func (m *Moments) means(e *compute.Engine, s Side, r Rows) error {
	d := r.Width()
	m.Mean[s] = make([]float64, d)
	if m.KeepMean {
		return nil
	}
	block, zeros := make([]float32, blockRows*d), make([]float32, d)
	sums, squares := make([]float64, vector.SumsRoom(d)), make([]float64, vector.SumsRoom(d))
	for first := 0; first < m.Count; first += blockRows {
		n := min(blockRows, m.Count-first)
		if err := readBlock(e, s, r, first, n, block); err != nil {
			return err
		}
		vector.ColumnMoments(sums, squares, block[:n*d], zeros)
	}
	for k, sum := range sums[:d] {
		if math.Abs(sum) > math.MaxFloat32 {
			return m.extreme(s)
		}
		m.Mean[s][k] = sum / float64(m.Count)
	}
	return nil
}

// extreme is the error of sums that are too large for float32.
func (m *Moments) extreme(s Side) error {
	return fmt.Errorf("align: sums over the %d rows of the %ss are beyond float32: look for rows of extreme size",
		m.Count, s)
}

// products sets the covariances.
func (m *Moments) products(e *compute.Engine, p Pairs) error {
	var own [2]*sums
	var blocks [2][]float32
	for s := range own {
		if r := p.Of(Side(s)); r != nil {
			own[s], blocks[s] = newSums(r.Width(), r.Width()), make([]float32, blockRows*r.Width())
		}
	}
	var cross *sums
	if own[Image] != nil && own[Text] != nil {
		cross = newSums(own[Image].r, own[Text].r)
	}
	for first := 0; first < m.Count; first += blockRows {
		n := min(blockRows, m.Count-first)
		for s, rows := range blocks {
			if rows == nil {
				continue
			}
			d := own[s].r
			rows = rows[:n*d]
			if err := readBlock(e, Side(s), p.Of(Side(s)), first, n, rows); err != nil {
				return err
			}
			if m.prepareRows(e, Side(s), rows); m.Count < d {
				m.few[s] = append(m.few[s], rows...)
			}
			own[s].add(e, rows, rows, n)
		}
		if cross != nil {
			cross.add(e, blocks[Image], blocks[Text], n)
		}
	}
	for s, c := range own {
		if c == nil {
			continue
		}
		m.Cov[s] = mat.NewSymDense(c.r, c.mean(m.Count))
		switch trace := mat.Trace(m.Cov[s]); {
		case trace == 0:
			return fmt.Errorf("align: the %d rows of the %ss are all the same: a fit needs rows that differ", m.Count,
				Side(s))
		case math.IsNaN(trace) || math.IsInf(trace, 0):
			return m.extreme(Side(s))
		}
	}
	if cross != nil {
		m.Cross = mat.NewDense(cross.r, cross.c, cross.mean(m.Count))
	}
	return nil
}

// prepareRows centres and scales rows in place. A row of zeros stays.
func (m *Moments) prepareRows(e *compute.Engine, s Side, rows []float32) {
	mean := m.Mean[s]
	d := len(mean)
	e.For(len(rows)/d, 64, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := rows[i*d:][:d]
			if !m.KeepMean {
				for k, v := range row {
					row[k] = float32(float64(v) - mean[k])
				}
			}
			if !m.KeepLength {
				unit(row)
			}
		}
	})
}

// unit scales a row to unit length; zeros stay.
func unit(row []float32) {
	sq := vector.SumSq(row)
	if sq == 0 {
		return
	}
	length := math.Sqrt(sq)
	if scale := float32(1 / length); !math.IsInf(float64(scale), 0) {
		vector.Scale(row, scale, row)
		return
	}
	for k, v := range row { // so short that float32 lacks the scale
		row[k] = float32(float64(v) / length)
	}
}

// sums adds up products of blocks.
type sums struct {
	r, c  int
	total []float64 // (r, c)
	block []float32
}

func newSums(r, c int) *sums {
	return &sums{r: r, c: c, total: make([]float64, r*c), block: make([]float32, r*c)}
}

// add adds x^T y for n rows.
func (s *sums) add(e *compute.Engine, x, y []float32, n int) {
	e.Gemm(true, false, s.r, s.c, n, 1, x, s.r, y, s.c, 0, s.block, s.c)
	e.For(len(s.total), 1<<14, func(_, lo, hi int) {
		block := s.block[lo:hi]
		for i := range block {
			s.total[lo+i] += float64(block[i])
		}
	})
}

// mean divides by the number of rows.
func (s *sums) mean(n int) []float64 {
	for i := range s.total {
		s.total[i] /= float64(n)
	}
	return s.total
}
