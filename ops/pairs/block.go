package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
)

// SideOf is a side of pairs: queries are the rows of matrices, contexts their columns.
type SideOf int

// Sides.
const (
	Queries  SideOf = iota // rows
	Contexts               // columns
)

// Block is a block of pairs that a computation is written for.
type Block struct {
	sides sides
	graph *gorgonia.ExprGraph
	spans [2]*gorgonia.Node // of each side
	rows  [2][]Features     // operands of tokens of each side
	whole [2][]Features     // and of its sequences
	// operands that all blocks read
	shared gorgonia.Nodes
}

// Rows returns operand k of the tokens of a side.
func (b *Block) Rows(side SideOf, k int) Features { return b.rows[side][k] }

// Wholes returns operand k of the sequences of a side.
func (b *Block) Wholes(side SideOf, k int) Features { return b.whole[side][k] }

// Value returns value i of shared operand k. It has no gradient.
func (b *Block) Value(k, i int) Matrix {
	x, g := b.shared[k], grid{One, One}
	b.need(i >= 0 && i < x.Shape().TotalSize(), "want value %d of %d", i, x.Shape().TotalSize())
	node := b.sides.apply(primitive{
		kind: "value", args: fmt.Sprint(i), shape: b.sides.shape(g), operands: 1, fixed: 1,
		grad:  func(gorgonia.Nodes, *gorgonia.Node, *gorgonia.Node) gorgonia.Nodes { return nil },
		on:    func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Value(i) },
		begin: func(w *work) { w.Out.F32[0] = w.In[0].F32[i] },
	}, b.spans, x)
	return Matrix{b, node, g}
}

// Matrix holds a value of each row and column of a block.
type Matrix struct {
	b    *Block
	node *gorgonia.Node
	grid grid
}

// need ends the construction of a computation unless ok.
func (b *Block) need(ok bool, format string, args ...any) {
	if !ok {
		panic(&op.BuildError{Op: "pairs", Err: fmt.Errorf(format, args...)})
	}
}

// with is a matrix of the block of m.
func (m Matrix) with(n *gorgonia.Node, g grid) Matrix { return Matrix{m.b, n, g} }
