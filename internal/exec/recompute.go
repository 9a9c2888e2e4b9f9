package exec

import (
	"cmp"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
)

// Recompute says which results of the forward pass are not kept for the backward
// pass but computed again right before it reads them: less memory for the time of
// another forward pass through the blocks (Chen et al. 2016, "Training Deep Nets with
// Sublinear Memory Cost", section 3). Ops are functions of their operands alone, so the
// numbers are those of a run that keeps everything, bit by bit.
//
// What a later part of the forward pass reads of a block, such as its output, is
// kept, and so is what lies outside of all blocks.
type Recompute struct {
	// Blocks lists the blocks in any order. They must not overlap.
	Blocks []Block
	// Backward is the id of the first node of the backward pass: NextID before the
	// graph is differentiated. Nodes from there on are the readers that a block's
	// results are computed again for.
	Backward int64
}

// Block is a part of the forward pass: the nodes whose ids are in [From, To). A
// builder marks one by calling NextID before and after it adds the nodes. Nodes that
// the graph held already, and shares with the block, are not part of it.
type Block struct{ From, To int64 }

// NextID returns an id above those of all nodes of g and not above those of nodes that
// are added later.
func NextID(g *gorgonia.ExprGraph) int64 {
	var next int64
	for _, n := range g.AllNodes() {
		next = max(next, n.ID()+1)
	}
	return next
}

// sorted returns the blocks in the order of the graph, or what is wrong with them.
func (r Recompute) sorted() ([]Block, error) {
	blocks := slices.Clone(r.Blocks)
	slices.SortFunc(blocks, func(a, b Block) int { return cmp.Compare(a.From, b.From) })
	for i, b := range blocks {
		switch {
		case b.From < 0 || b.From >= b.To:
			return nil, fmt.Errorf("exec: a block to compute again must hold nodes (got ids from %d to before %d)",
				b.From, b.To)
		case b.To > r.Backward:
			return nil, fmt.Errorf("exec: a block to compute again must end before the backward pass (got node %d, the backward pass begins with %d)", b.To-1, r.Backward)
		case i > 0 && b.From < blocks[i-1].To:
			return nil, fmt.Errorf("exec: blocks to compute again overlap (got ids %v and %v)", blocks[i-1], b)
		}
	}
	return blocks, nil
}

// repeat returns the program with the dropped results of the blocks computed again
// for the nodes of the backward pass, each right before the first of them that needs
// it. keep holds the ids of nodes whose values somebody outside of the program reads.
func (r Recompute) repeat(items []item, keep map[int64]bool) ([]item, error) {
	blocks, err := r.sorted()
	if err != nil || len(blocks) == 0 {
		return items, err
	}
	dropped := r.dropped(items, blocks, keep)
	var out []item
	place := make([]int, len(items)) // of what is computed in the forward pass
	again := map[int]int{}           // place of what is computed once more
	add := func(i int) int {
		it := item{node: items[i].node, in: make([]int, len(items[i].in))}
		for k, j := range items[i].in {
			it.in[k] = place[j]
			if p, ok := again[j]; ok {
				it.in[k] = p
			}
		}
		out = append(out, it)
		return len(out) - 1
	}
	for i, it := range items {
		if it.node.ID() >= r.Backward {
			for _, j := range missing(items, it.in, dropped, again) {
				again[j] = add(j)
			}
		}
		place[i] = add(i)
	}
	return prune(out, keep), nil
}

// prune removes what nobody reads any more: a forward result that only the backward
// pass asked for.
func prune(items []item, keep map[int64]bool) []item {
	read := make([]bool, len(items))
	for i := len(items) - 1; i >= 0; i-- {
		read[i] = read[i] || keep[items[i].node.ID()]
		if read[i] {
			for _, j := range items[i].in {
				read[j] = true
			}
		}
	}
	var out []item
	place := make([]int, len(items))
	for i, it := range items {
		if !read[i] {
			continue
		}
		for k, j := range it.in {
			it.in[k] = place[j]
		}
		place[i] = len(out)
		out = append(out, it)
	}
	return out
}

// missing returns in order the dropped items that operands depend on and that have not
// been computed again yet.
func missing(items []item, operands []int, dropped []bool, again map[int]int) []int {
	var need []int
	seen := map[int]bool{}
	stack := slices.Clone(operands)
	for len(stack) > 0 {
		j := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if _, done := again[j]; done || seen[j] || !dropped[j] {
			continue
		}
		seen[j] = true
		need = append(need, j)
		stack = append(stack, items[j].in...)
	}
	slices.Sort(need)
	return need
}

// dropped marks the items whose results the backward pass must not read: those in a
// block that no node of the forward pass outside of it reads.
func (r Recompute) dropped(items []item, blocks []Block, keep map[int64]bool) []bool {
	block := make([]int, len(items)) // the block an item is in, or -1
	drop := make([]bool, len(items))
	for i, it := range items {
		block[i] = slices.IndexFunc(blocks, func(b Block) bool { return b.From <= it.node.ID() && it.node.ID() < b.To })
		drop[i] = block[i] >= 0 && !it.isInput() && !it.isConstant() && !keep[it.node.ID()]
		if it.node.ID() >= r.Backward {
			continue
		}
		for _, j := range it.in {
			if block[j] != block[i] {
				drop[j] = false
			}
		}
	}
	// The memory of a kept name is there anyway.
	for i := len(items) - 1; i >= 0; i-- {
		if operand, aux, ok := aliasOf(items[i].node); ok && aux < 0 && !drop[i] && items[i].node.ID() < r.Backward {
			drop[items[i].in[operand]] = false
		}
	}
	return drop
}
