package exec

import (
	"fmt"
	"slices"
	"sort"

	"gorgonia.org/gorgonia"
)

// item is one place in the order of a run: a node and the places of its operands,
// which all come before it. A node has a second item where it is computed again for
// the backward pass.
type item struct {
	node *gorgonia.Node
	in   []int
}

// isInput says whether the value is the caller's.
func (it item) isInput() bool { return it.node.Op() == nil }

// isConstant says whether the op holds the value.
func (it item) isConstant() bool { return it.node.Op() != nil && len(it.in) == 0 }

// program orders the nodes that outputs depend on as they were made, which is a
// topological order: an op's operands exist before it. It also keeps a gradient
// near the moment it is consumed, which Gorgonia's own sort does not.
func program(g *gorgonia.ExprGraph, outputs gorgonia.Nodes) ([]item, error) {
	in := map[int64]gorgonia.Nodes{}
	var nodes gorgonia.Nodes
	stack := slices.Clone(outputs)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if _, seen := in[n.ID()]; seen {
			continue
		}
		ops := operands(g, n)
		in[n.ID()] = ops
		nodes = append(nodes, n)
		stack = append(stack, ops...)
	}
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].ID() < nodes[j].ID() })
	items := make([]item, len(nodes))
	place := make(map[int64]int, len(nodes))
	for i, n := range nodes {
		items[i].node = n
		for _, operand := range in[n.ID()] {
			j, ok := place[operand.ID()]
			if !ok {
				return nil, fmt.Errorf("exec: node %v comes before its operand %v", n, operand)
			}
			items[i].in = append(items[i].in, j)
		}
		place[n.ID()] = i
	}
	return items, nil
}

// operands returns a node's operands in order. An operand used twice is listed twice.
func operands(g *gorgonia.ExprGraph, n *gorgonia.Node) gorgonia.Nodes {
	it := g.From(n.ID())
	if it == nil {
		return nil
	}
	var in gorgonia.Nodes
	for it.Next() {
		in = append(in, it.Node().(*gorgonia.Node))
	}
	return in
}

// aliasOf returns which operand, or which auxiliary result of it (aux >= 0), a node
// names. ok is false for a node that is computed.
func aliasOf(n *gorgonia.Node) (operand, aux int, ok bool) {
	if a, is := n.Op().(Aliaser); is {
		return a.Alias()
	}
	return 0, 0, false
}
