package pool

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
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

// Operands are the positions of a pool's nodes among an op's operands; cols is -1
// for a pool without.
type Operands struct{ Keys, Queue, Pointer, Cols int }

// Operands appends the pool's nodes to in.
func (p Pool) Operands(in gorgonia.Nodes) (Operands, gorgonia.Nodes) {
	n := len(in)
	at := Operands{Keys: n, Queue: n + 1, Pointer: n + 2, Cols: -1}
	in = append(in, p.Keys, p.Queue, p.Pointer)
	if p.Cols != nil {
		at.Cols = n + 3
		in = append(in, p.Cols)
	}
	return at, in
}

// Args is the identity of an op over the pool, for op.Op.Args.
func (p Operands) Args() string {
	return fmt.Sprintf("keys=%d queue=%d pointer=%d cols=%d", p.Keys, p.Queue, p.Pointer, p.Cols)
}

// Check looks at the shapes of a pool of features with width channels.
func (p Operands) Check(in []tensor.Shape, width int) error {
	keys, queue := in[p.Keys], in[p.Queue]
	if err := op.All(
		op.Need(len(keys) == 2 && keys[1] == width, "keys must have shape (B2, %d) (got %v)", width, keys),
		op.Need(len(queue) == 2 && queue[1] == width, "queue must have shape (N, %d) (got %v)", width, queue),
		op.Need(len(in[p.Pointer]) == 0, "pointer must be a scalar (got %v)", in[p.Pointer]),
		op.WantShape(in, p.Cols, "cols"),
	); err != nil {
		return err
	}
	return op.Need(keys[0] <= queue[0], "a batch of %d rows does not fit into a queue of %d", keys[0], queue[0])
}

// Segment is a range of a pool's columns that lie in one array: columns [col, col+n) are
// rows [row, row+n) of the batch's keys, or of the queue.
type Segment struct {
	Batch       bool
	Col, Row, N int
}

// State is how the columns of a pool lie in a run.
type State struct {
	Size, batch, Pointer, Cols int // N, B2, and values of the run
	Segments                   []Segment
	memory                     [3]Segment
}

// Read brings s up to date with the operands of a run. Segments are in the order of
// their columns, none is empty, and they end at the last column that exists.
func (s *State) Read(c *exec.Call, p Operands) error {
	s.Size, s.batch = c.In[p.Queue].Dim(0), c.In[p.Keys].Dim(0)
	s.Pointer, s.Cols = int(c.In[p.Pointer].I32[0]), s.Size
	if s.Pointer < 0 || s.Pointer >= s.Size {
		return fmt.Errorf("ops: pool: pointer is %d: want [0, %d)", s.Pointer, s.Size)
	}
	if p.Cols >= 0 {
		if s.Cols = int(c.In[p.Cols].I32[0]); s.Cols < 0 || s.Cols > s.Size {
			return fmt.Errorf("ops: pool: cols is %d: want [0, %d]", s.Cols, s.Size)
		}
	}
	s.Segments = s.memory[:0]
	end := s.Pointer + s.batch
	wrapped := max(0, end-s.Size)
	s.add(true, 0, s.Size-s.Pointer, wrapped)
	s.add(false, wrapped, wrapped, s.Pointer-wrapped)
	s.add(true, s.Pointer, 0, s.batch-wrapped)
	if wrapped == 0 {
		s.add(false, end, end, s.Size-end)
	}
	return nil
}

// add appends a segment as far as its columns exist.
func (s *State) add(batch bool, col, row, n int) {
	if n = min(n, s.Cols-col); n > 0 {
		s.Segments = append(s.Segments, Segment{batch, col, row, n})
	}
}

// Row returns which row of which array column j is.
func (s *State) Row(j int) (batch bool, row int) {
	k := j - s.Pointer
	if k < 0 {
		k += s.Size
	}
	if k < s.batch {
		return true, k
	}
	return false, j
}

// Feature returns the features of column j.
func (s *State) Feature(c *exec.Call, p Operands, j int) []float32 {
	batch, r := s.Row(j)
	x := c.In[p.Queue]
	if batch {
		x = c.In[p.Keys]
	}
	width := x.Dim(1)
	return x.F32[r*width : (r+1)*width]
}
