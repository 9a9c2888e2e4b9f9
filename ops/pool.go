package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Pool is a queue with a batch in it: rows [Pointer, Pointer+B2) mod N of the queue, its
// oldest, stand for the batch's keys. It is what the queue will hold once the batch is
// inserted (Mei et al., algorithm 2), while the queue's memory is written only after
// the update, so that a step that fails loses nothing.
type Pool struct {
	Keys    *gorgonia.Node // (B2, C) features of the batch, B2 <= N
	Queue   *gorgonia.Node // (N, C) past features
	Pointer *gorgonia.Node // int32 scalar in [0, N)
	Cols    *gorgonia.Node // int32 scalar, how many rows exist, the first ones; nil: all
}

// poolOperands are the positions of a pool's nodes among an op's operands; cols is -1
// for a pool without.
type poolOperands struct{ keys, queue, pointer, cols int }

// operands appends the pool's nodes to in.
func (p Pool) operands(in gorgonia.Nodes) (poolOperands, gorgonia.Nodes) {
	n := len(in)
	at := poolOperands{keys: n, queue: n + 1, pointer: n + 2, cols: -1}
	in = append(in, p.Keys, p.Queue, p.Pointer)
	if p.Cols != nil {
		at.cols = n + 3
		in = append(in, p.Cols)
	}
	return at, in
}

func (p poolOperands) args() string {
	return fmt.Sprintf("keys=%d queue=%d pointer=%d cols=%d", p.keys, p.queue, p.pointer, p.cols)
}

// check looks at the shapes of a pool of features with width channels.
func (p poolOperands) check(in []tensor.Shape, width int) error {
	keys, queue := in[p.keys], in[p.queue]
	if err := all(
		need(len(keys) == 2 && keys[1] == width, "keys must have shape (B2, %d) (got %v)", width, keys),
		need(len(queue) == 2 && queue[1] == width, "queue must have shape (N, %d) (got %v)", width, queue),
		need(len(in[p.pointer]) == 0, "pointer must be a scalar (got %v)", in[p.pointer]),
		wantShape(in, p.cols, "cols"),
	); err != nil {
		return err
	}
	return need(keys[0] <= queue[0], "a batch of %d rows does not fit into a queue of %d", keys[0], queue[0])
}

// segment is a range of a pool's columns that lie in one array: columns [col, col+n) are
// rows [row, row+n) of the batch's keys, or of the queue.
type segment struct {
	batch       bool
	col, row, n int
}

// poolState is how the columns of a pool lie in a run.
type poolState struct {
	size, batch, pointer, cols int // N, B2, and values of the run
	segments                   []segment
	memory                     [3]segment
}

// read brings s up to date with the operands of a run. Segments are in the order of
// their columns, none is empty, and they end at the last column that exists.
func (s *poolState) read(c *exec.Call, p poolOperands) error {
	s.size, s.batch = c.In[p.queue].Dim(0), c.In[p.keys].Dim(0)
	s.pointer, s.cols = int(c.In[p.pointer].I32[0]), s.size
	if s.pointer < 0 || s.pointer >= s.size {
		return fmt.Errorf("ops: pool: pointer is %d: want [0, %d)", s.pointer, s.size)
	}
	if p.cols >= 0 {
		if s.cols = int(c.In[p.cols].I32[0]); s.cols < 0 || s.cols > s.size {
			return fmt.Errorf("ops: pool: cols is %d: want [0, %d]", s.cols, s.size)
		}
	}
	s.segments = s.memory[:0]
	end := s.pointer + s.batch
	wrapped := max(0, end-s.size)
	s.add(true, 0, s.size-s.pointer, wrapped)
	s.add(false, wrapped, wrapped, s.pointer-wrapped)
	s.add(true, s.pointer, 0, s.batch-wrapped)
	if wrapped == 0 {
		s.add(false, end, end, s.size-end)
	}
	return nil
}

// add appends a segment as far as its columns exist.
func (s *poolState) add(batch bool, col, row, n int) {
	if n = min(n, s.cols-col); n > 0 {
		s.segments = append(s.segments, segment{batch, col, row, n})
	}
}

// row returns which row of which array column j is.
func (s *poolState) row(j int) (batch bool, row int) {
	k := j - s.pointer
	if k < 0 {
		k += s.size
	}
	if k < s.batch {
		return true, k
	}
	return false, j
}

// feature returns the features of column j.
func (s *poolState) feature(c *exec.Call, p poolOperands, j int) []float32 {
	batch, r := s.row(j)
	x := c.In[p.queue]
	if batch {
		x = c.In[p.keys]
	}
	width := x.Dim(1)
	return x.F32[r*width : (r+1)*width]
}
