package op

import "gorgonia.org/gorgonia"

// Operands are those of an op that is being built.
type Operands []*gorgonia.Node

// Add appends an operand that may be missing and returns its place, -1 for nil.
func (l *Operands) Add(n *gorgonia.Node) int {
	if n == nil {
		return -1
	}
	*l = append(*l, n)
	return len(*l) - 1
}
