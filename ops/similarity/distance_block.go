package similarity

import (
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/pool"
)

// Distances are worked on in blocks of so many rows and columns: small enough for a core's
// second level cache, so that no step holds the cosines of all spheres.
const (
	distanceRows    = 16
	distanceColumns = 256
	distanceBlock   = distanceRows * distanceColumns
)

// distanceBlocks returns the blocks of so many rows. Threads share blocks and not rows, so
// that results do not depend on their number.
func distanceBlocks(rows int) int { return (rows + distanceRows - 1) / distanceRows }

// distanceRun is what a step of a distance op knows of its run.
type distanceRun struct {
	*distance
	c          *exec.Call
	width      int // C
	pool       pool.State
	columns    []columnRun
	memory     [4]columnRun
	scores, dy []float32 // (B, columns) in a backward step
	total      int
}

func (x *distance) newRun(c *exec.Call, width int) *distanceRun {
	return &distanceRun{distance: x, c: c, width: width}
}

// begin finds the columns of a run.
func (r *distanceRun) begin() (err error) {
	r.columns, err = r.layout.runs(r.c, &r.pool, r.memory[:0])
	return err
}

// existing returns how many columns are rows of an operand.
func (r *distanceRun) existing(operand int) (n int) {
	for _, g := range r.columns {
		if g.operand == operand {
			n += g.n
		}
	}
	return n
}

// distanceWork is a thread's memory: values of a block, and of its columns.
type distanceWork struct{ dots, coefficients, norms []float32 }

func (x *distance) floats(int) int { return 2*distanceBlock + distanceColumns }

func (r *distanceRun) worker(i int) distanceWork {
	s := r.c.Scratch[i*r.floats(r.width):]
	return distanceWork{s[:distanceBlock], s[distanceBlock : 2*distanceBlock],
		s[2*distanceBlock : 2*distanceBlock+distanceColumns]}
}

// products sets w.dots (n, m) to the products of rows f[i:i+n] and x[j:j+m] over the channels
// [from, from+width).
func (r *distanceRun) products(w distanceWork, f []float32, i, n int, x []float32, j, m, from, width int) {
	r.c.Engine.GemmSerial(false, true, n, m, width, 1, f[i*r.width+from:], r.width, x[j*r.width+from:], r.width, 0,
		w.dots, m)
}

// block sets out, rows of total values, to the scores of n rows of f and m rows of x.
func (r *distanceRun) block(w distanceWork, f []float32, i, n int, x []float32, j, m int, out []float32, total int) {
	if r.Kind == "l2" {
		r.products(w, f, i, n, x, j, m, 0, r.width)
		for t := range m {
			w.norms[t] = float32(vector.SumSq(r.row(x, j+t)))
		}
		for k := range n {
			own := vector.SumSq(r.row(f, i+k))
			for t, dot := range w.dots[k*m : (k+1)*m] {
				out[k*total+t] = -vector.Distance(own+float64(w.norms[t]), float64(dot), r.row(f, i+k), r.row(x, j+t))
			}
		}
		return
	}
	unit := r.width / r.Spheres
	for k := range n {
		clear(out[k*total : k*total+m])
	}
	for s := range r.Spheres {
		r.products(w, f, i, n, x, j, m, s*unit, unit)
		vector.Acos(w.dots[:n*m], w.dots[:n*m], vector.AcosLimit)
		for k := range n {
			sum := out[k*total : k*total+m]
			for t, a := range w.dots[k*m : (k+1)*m] {
				sum[t] += a * a
			}
		}
	}
	for k := range n {
		sum := out[k*total : k*total+m]
		for t, v := range sum {
			sum[t] = -float32(math.Sqrt(float64(v)))
		}
	}
}

// gradient adds to rows [i, i+n) of the output the gradient of their distances from m rows
// of x. swapped says that rows are keys, whose scores with the others stand in a column:
// at is the other index of the block's first score.
//
//	d(-|f - x|)/df                        = (x - f)/|f - x|
//	d(-sqrt(sum arccos^2(c_k)))/df_k      = arccos(c_k) / (sqrt(1 - c_k^2) * distance) * x_k
func (r *distanceRun) gradient(w distanceWork, swapped bool, f []float32, i, n int, x []float32, j, m, at int) {
	out := r.c.Out.F32
	// coefficients[k, t] = -dy/distance, 0 at distance 0
	for k := range n {
		c := w.coefficients[k*m : (k+1)*m]
		for t := range c {
			p := r.place(swapped, i+k, at+t)
			c[t] = 0
			if s := r.scores[p]; s != 0 {
				c[t] = r.dy[p] / s
			}
		}
	}
	if r.Kind == "l2" {
		// sum_t -dy/dist (f - x_t), near rows first and one by one
		r.nearGradients(w, swapped, f, i, n, x, j, m, at)
		r.c.Engine.GemmSerial(false, false, n, r.width, m, -1, w.coefficients, m, x[j*r.width:], r.width, 1,
			out[i*r.width:], r.width)
		for k := range n {
			var sum float64
			for _, v := range w.coefficients[k*m : (k+1)*m] {
				sum += float64(v)
			}
			vector.Axpy(r.row(out, i+k), float32(sum), r.row(f, i+k))
		}
		return
	}
	unit := r.width / r.Spheres
	for s := range r.Spheres {
		r.products(w, f, i, n, x, j, m, s*unit, unit)
		r.slopes(w.dots[:n*m], w.coefficients[:n*m], w.norms)
		r.c.Engine.GemmSerial(false, false, n, unit, m, 1, w.dots, m, x[j*r.width+s*unit:], r.width, 1,
			out[i*r.width+s*unit:], r.width)
	}
}

// nearGradients adds the gradient of l2 for pairs that are near each other, whose
// difference would be lost in sums of products, and sets their coefficients to 0.
func (r *distanceRun) nearGradients(w distanceWork, swapped bool, f []float32, i, n int, x []float32, j, m, at int) {
	for t := range m {
		w.norms[t] = float32(vector.SumSq(r.row(x, j+t)))
	}
	for k := range n {
		row, out := r.row(f, i+k), r.row(r.c.Out.F32, i+k)
		own := vector.SumSq(row)
		for t := range m {
			score, c := float64(r.scores[r.place(swapped, i+k, at+t)]), w.coefficients[k*m+t]
			if c == 0 || !vector.Near(score*score, own+float64(w.norms[t])) {
				continue
			}
			for d, v := range r.row(x, j+t) {
				out[d] += c * (row[d] - v)
			}
			w.coefficients[k*m+t] = 0
		}
	}
}

// row returns row i of x.
func (r *distanceRun) row(x []float32, i int) []float32 { return x[i*r.width : (i+1)*r.width] }

// place returns where the score of a row and the other side's index is; swapped says that
// rows are keys, whose scores stand in a column.
func (r *distanceRun) place(swapped bool, row, other int) int {
	if swapped {
		return other*r.total + row
	}
	return row*r.total + other
}

// slopes replaces cosines by coefficient * arccos * d arccos, with room for some angles.
func (r *distanceRun) slopes(dots, coefficients, angles []float32) {
	for len(dots) > 0 {
		n := min(len(dots), len(angles))
		vector.Acos(angles[:n], dots[:n], vector.AcosLimit)
		for t, c := range coefficients[:n] {
			angles[t] *= c
		}
		vector.AcosGrad(dots[:n], dots[:n], angles[:n], vector.AcosLimit)
		dots, coefficients = dots[n:], coefficients[n:]
	}
}
