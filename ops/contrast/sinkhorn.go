package contrast

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// SinkhornArgs are the operands and settings of Sinkhorn.
type SinkhornArgs struct {
	Scores *gorgonia.Node // (B, K) scores of a batch with K prototypes
	// Queue (Q, K) holds scores of past features, which take part in the balance and get
	// no codes, and Rows is the int32 scalar number of them that exist, the first ones.
	// nil: none.
	Queue, Rows *gorgonia.Node
	Epsilon     float32 // > 0, the temperature of the codes
	Iterations  int     // >= 1
}

// Sinkhorn returns the logarithms of balanced codes (B, K): Sinkhorn and Knopp's
// iteration as SwAV uses it (Caron et al. 2020, eq. 5 and appendix A). With the scores S
// of the batch and of the queue, N rows in all, it starts from Q = exp(S/epsilon) and
// repeats
//
//	Q_nk <- Q_nk / (K sum_n Q_nk)      every prototype has an equal share
//	Q_nk <- Q_nk / (N sum_k Q_nk)      every row has an equal share
//
// so that N*Q_n is a distribution over the prototypes. The softmax of the result is that
// distribution, as CrossEntropyArgs.Teacher wants it. No gradient flows through codes.
//
// Values that are not finite give codes that are not, in every row.
func Sinkhorn(a SinkhornArgs) *gorgonia.Node {
	if !(a.Epsilon > 0) || a.Iterations < 1 {
		panic(&op.BuildError{Op: "sinkhorn",
			Err: fmt.Errorf("want epsilon > 0 and at least one iteration (got %v and %d)", a.Epsilon, a.Iterations)})
	}
	in := []*gorgonia.Node{a.Scores}
	if a.Queue != nil {
		in = append(in, a.Queue, a.Rows)
	}
	s := sinkhorn{epsilon: a.Epsilon, iterations: a.Iterations}
	return op.Apply(&op.Op{
		Kind: "sinkhorn", Args: fmt.Sprintf("epsilon=%v iterations=%d", a.Epsilon, a.Iterations),
		Diff: make([]bool, len(in)), Shape: s.shape, Host: s.prepare,
		On: oncuda.Sinkhorn(s.epsilon, s.iterations, leastShare),
		Scratch: func(in []tensor.Shape, _ int) int {
			rows, k := s.size(in)
			return rows*k + 2*rows + 2*k
		},
		FLOPs: func(in []tensor.Shape) int64 {
			rows, k := s.size(in)
			return int64(4 * rows * k * s.iterations)
		},
	}, in...)
}

// leastShare is the floor of a prototype's share before it is brought to that of the
// others: one whose scores underflow in every row stays finite.
const leastShare = 1e-37

// sinkhorn describes the op.
type sinkhorn struct {
	epsilon    float32
	iterations int
}

// size returns the most rows and the number of prototypes.
func (s sinkhorn) size(in []tensor.Shape) (rows, k int) {
	rows, k = in[0][0], in[0][1]
	if len(in) > 1 {
		rows += in[1][0]
	}
	return rows, k
}

func (s sinkhorn) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 2 && in[0][0] > 0 && in[0][1] > 0, "want scores (B, K)"); err != nil {
		return nil, err
	}
	if len(in) > 1 {
		if err := op.All(
			op.Need(len(in[1]) == 2 && in[1][1] == in[0][1], "scores of the queue must have shape (Q, %d) (got %v)",
				in[0][1], in[1]),
			op.Need(len(in[2]) == 0, "rows must be a scalar (got %v)", in[2]),
		); err != nil {
			return nil, err
		}
	}
	return in[0].Clone(), nil
}

// prepare keeps Q as diag(row) P diag(col) with P = exp((S - top of its row)/epsilon),
// where the tops go into the scaling of rows.
func (s sinkhorn) prepare(c *exec.Call) (exec.Step, error) {
	b, k := c.In[0].Dim(0), c.In[0].Dim(1)
	most := b
	if len(c.In) > 1 {
		most += c.In[1].Dim(0)
	}
	p, rest := c.Scratch[:most*k], c.Scratch[most*k:]
	row, top, col, sum := rest[:most], rest[most:][:most], rest[2*most:][:k], rest[2*most+k:][:k]
	scores := func(n int) []float32 {
		if n < b {
			return c.In[0].F32[n*k:][:k]
		}
		return c.In[1].F32[(n-b)*k:][:k]
	}
	start := func(_, lo, hi int) {
		for n := lo; n < hi; n++ {
			x, y := scores(n), p[n*k:][:k]
			top[n] = vector.Max(x) / s.epsilon
			vector.Scale(y, 1/s.epsilon, x)
			vector.ExpSum(y, y, top[n])
		}
	}
	balance := func(_, lo, hi int) {
		for n := lo; n < hi; n++ {
			row[n] = 1 / vector.Dot(p[n*k:][:k], col)
		}
	}
	codes := func(_, lo, hi int) {
		for n := lo; n < hi; n++ {
			// log(N Q_nk) = S_nk/epsilon - top_n + log row_n + log col_k
			y := c.Out.F32[n*k:][:k]
			vector.Axpby(y, 1/s.epsilon, scores(n), 1, sum)
			shift := float32(math.Log(float64(row[n]))) - top[n]
			for j := range y {
				y[j] += shift
			}
		}
	}
	return func() error {
		rows := b
		if len(c.In) > 1 {
			q := int(c.In[2].I32[0])
			if q < 0 || q > most-b {
				return fmt.Errorf("ops: sinkhorn: %d rows of the queue: want [0, %d]", q, most-b)
			}
			rows += q
		}
		c.Engine.For(rows, op.RowGrain(8*k), start)
		// The first scaling of columns knows Q itself, whose rows differ by their tops.
		highest := vector.Max(top[:rows])
		for n := range rows {
			row[n] = float32(math.Exp(float64(top[n] - highest)))
		}
		for range s.iterations {
			clear(sum)
			for n := range rows {
				vector.Axpy(sum, row[n], p[n*k:][:k])
			}
			for j := range col {
				col[j] = 1 / max(sum[j], leastShare)
			}
			c.Engine.For(rows, op.RowGrain(2*k), balance)
		}
		for j := range sum {
			sum[j] = float32(math.Log(float64(col[j])))
		}
		c.Engine.For(b, op.RowGrain(4*k), codes)
		return nil
	}, nil
}
