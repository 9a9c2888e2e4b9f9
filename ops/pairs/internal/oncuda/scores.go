package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
)

// Scored is an op that runs the computation of a block for all blocks, with its inputs and results.
type Scored struct {
	Inputs   gorgonia.Nodes // of each operand of rows, and then of shared ones
	Spans    [2]*gorgonia.Node
	Slopes   *gorgonia.Node
	Scores   gorgonia.Nodes // and the values of pairs beside them
	Wrt      []int          // inputs that have a gradient
	Grads    gorgonia.Nodes // of those
	Of       []Operand      // operands that are rows
	Lengths  [2]int         // operands, -1: none
	Operands int
	Sides    Sides
	First    [2]int // token that takes part
	Count    [2]int // sequences
	Step     [2]int // of queries and contexts in the matrix of scores
	Back     bool
}

// Operand is one of the tokens of a side, or of its sequences.
type Operand struct {
	Side int
	Axis Axis
}

// Steps are those of the op: a block is as many sequences of each side as there is room for, all with the same room.
func (x Scored) Steps() cuda.Steps { return cuda.On(x.prepare) }

func (x Scored) prepare(c *exec.DeviceCall) cuda.Step {
	d := cuda.Of(c)
	buffer := func(n *gorgonia.Node) *cuda.Buffer { // nil of an input that nothing there reads
		b, err := c.Inner.Buffer(n)
		d.Note(err)
		own, _ := b.(*cuda.Buffer)
		return own
	}
	at := func(b *cuda.Buffer) any {
		if b == nil {
			return nil
		}
		return b.Pointer()
	}
	buffers := func(nodes gorgonia.Nodes) (list []*cuda.Buffer) {
		for _, n := range nodes {
			list = append(list, buffer(n))
		}
		return list
	}
	inputs, results := buffers(x.Inputs), gorgonia.Nodes{x.Slopes}
	var grads []*cuda.Buffer
	if x.Back {
		grads = buffers(x.Grads)
	} else {
		results = x.Scores
	}
	var spans [2]*cuda.Buffer
	for k, n := range x.Spans {
		spans[k] = buffer(n)
	}
	scores := buffers(results)
	begin, gather, add, give := cuda.Load(c, source, "take_sequences"), cuda.Load(c, source, "gather_rows"),
		cuda.Load(c, source, "add_rows"), cuda.Load(c, source, "give_scores")
	addValues := cuda.Load(c, source, "add_values")
	if x.Back {
		give = cuda.Load(c, source, "take_slopes")
	}
	var from, count [2]int
	rows := func(k *cuda.Kernel, i int, to, x1 any) {
		of := x.Of[i]
		s, channels := x.Sides[of.Side], c.In[i].Shape[1]
		first, length := x.First[of.Side], s.Len
		if of.Axis == Sequences {
			first, length = 0, 1
		}
		k.Enqueue(cuda.Each(s.Size(of.Axis)*channels), to, x1, spans[of.Side].Pointer(), first, length, from[of.Side],
			s.Size(of.Axis), channels)
	}
	gradient := func(i int) exec.Operand {
		if i == 0 {
			return c.Out
		}
		return c.Aux[i-1]
	}
	take := func(side, first int) {
		s := x.Sides[side]
		from[side], count[side] = first, min(s.Tokens/s.Len, x.Count[side]-first)
		begin.Enqueue(cuda.Each(s.Sequences), spans[side].Pointer(), cuda.Optional(c, x.Lengths[side]), x.First[side],
			s.Len, first, count[side], s.Tokens, s.Sequences)
		for i, of := range x.Of {
			if in := inputs[i]; of.Side == side && in != nil {
				rows(gather, i, in.Pointer(), c.In[i])
			}
		}
	}
	// exchange values of pairs, of which all has width of each pair.
	exchange := func(all any, of *cuda.Buffer, value, width int) {
		give.Enqueue(cuda.Each(x.Sides[0].Sequences*x.Sides[1].Sequences), all, at(of), value, width, spans[0].Pointer(),
			spans[1].Pointer(), cuda.Optional(c, x.Lengths[0]), cuda.Optional(c, x.Lengths[1]), x.Sides[0].Len,
			x.Sides[1].Len, from[0], from[1], count[0], count[1], x.Sides[0].Sequences, x.Sides[1].Sequences, x.Step[0],
			x.Step[1])
	}
	block := func() {
		if x.Back && scores[0] != nil {
			exchange(c.In[x.Operands], scores[0], 0, 1)
		}
		d.Note(c.Inner.Run())
		for i, of := range scores {
			if i == 0 && !x.Back {
				exchange(c.Out, of, 0, 1)
			} else if !x.Back {
				exchange(c.Aux[0], of, i-1, len(scores)-1)
			}
		}
		for i, g := range grads {
			if k := x.Wrt[i]; k < len(x.Of) {
				rows(add, k, gradient(i), g.Pointer())
			} else {
				n := x.Inputs[k].Shape().TotalSize()
				addValues.Enqueue(cuda.Each(n), gradient(i), g.Pointer(), int64(n))
			}
		}
	}
	return func() {
		for k := len(x.Of); k < len(x.Inputs); k++ {
			if inputs[k] != nil {
				own := c.In[k]
				own.Buffer = inputs[k]
				d.Note(cuda.Copy(own, c.In[k]))
			}
		}
		for i := range grads {
			cuda.Zero(gradient(i))
		}
		for j := 0; j < x.Count[1]; j += count[1] {
			take(1, j)
			for i := 0; i < x.Count[0]; i += count[0] {
				take(0, i)
				block()
			}
		}
	}
}
