package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// run is a step on the host.
type run struct {
	*scores
	*block
	c        *exec.Call
	back     bool
	packed   [][]float32 // of each operand of rows
	channels []int       // of each
	spans    [2]spans
	slopes   []float32
	from, to [2]int // sequences of each side in the block
	side     int    // that is packed
	result   exec.Array
	grads    []exec.Array
}

func (x *scores) step(c *exec.Call, back bool) (exec.Step, error) {
	r := &run{scores: x, block: x.host, c: c, back: back}
	if n := c.Inner.Nested; n == x.device.forward || n == x.device.back {
		r.block = x.device
	}
	left := c.Scratch
	take := func(n int) []float32 {
		part := left[:n:n]
		left = left[n:]
		return part
	}
	for _, n := range r.inputs {
		r.packed, r.channels = append(r.packed, take(n.Shape().TotalSize())), append(r.channels, n.Shape()[1])
		if err := c.Inner.SetInput(n, r.packed[len(r.packed)-1]); err != nil {
			return nil, err
		}
	}
	for k, n := range r.block.spans {
		r.spans[k] = spansOf(r.sides[k])
		if err := c.Inner.SetInput(n, []int32(r.spans[k])); err != nil {
			return nil, err
		}
	}
	var err error
	if !back {
		r.result, err = c.Inner.Value(r.block.scores)
	} else {
		r.slopes = take(r.block.slopes.Shape().TotalSize())
		err = c.Inner.SetInput(r.block.slopes, r.slopes)
		for k := 0; k < len(r.inputs) && err == nil; k++ {
			var a exec.Array
			a, err = c.Inner.Value(r.block.grads[k])
			r.grads = append(r.grads, a)
		}
	}
	pack, unpack := r.pack, r.unpack
	return func() error {
		if err := r.begin(); err != nil {
			return err
		}
		for r.to[1] = 0; r.to[1] < x.count[1]; {
			r.take(1, pack)
			for r.to[0] = 0; r.to[0] < x.count[0]; {
				r.take(0, pack)
				if back {
					r.takeSlopes()
				}
				if err := c.Inner.Run(); err != nil {
					return err
				}
				if !back {
					r.giveScores()
					continue
				}
				for r.side = range 2 {
					c.Engine.For(r.to[r.side]-r.from[r.side], 1, unpack)
				}
			}
		}
		return nil
	}, err
}

// begin checks lengths and clears gradients.
func (r *run) begin() error {
	for k, at := range r.lengths {
		if at < 0 {
			continue
		}
		for i, n := range r.c.In[at].I32 {
			if most := r.scores.side(k).Len; int(n) > most {
				return fmt.Errorf("ops: tokens: length %d of sequence %d: want at most %d", n, i, most)
			}
		}
	}
	for k := 0; r.back && k < r.floats; k++ {
		clear(r.gradient(k))
	}
	return nil
}

// gradient returns where the gradient of an operand goes.
func (r *run) gradient(operand int) []float32 {
	if operand == 0 {
		return r.c.Out.F32
	}
	return r.c.Aux[operand-1].F32
}

// part returns which tokens of sequence i of a side take part.
func (r *run) part(side, i int) (lo, hi int) {
	s := r.scores.side(side)
	hi = s.Len
	if at := r.lengths[side]; at >= 0 {
		hi = int(r.c.In[at].I32[i])
	}
	return s.First, max(hi, s.First)
}

// take packs the next sequences of a side, as many as there is room for.
func (r *run) take(side int, pack func(worker, lo, hi int)) {
	s, room := r.spans[side], r.sides[side]
	i, tokens := r.to[side], 0
	r.from[side] = i
	for ; i < r.count[side] && i-r.from[side] < room.Sequences; i++ {
		lo, hi := r.part(side, i)
		if tokens+hi-lo > room.Tokens {
			break
		}
		at := 2 + 2*(i-r.from[side])
		s[at], s[at+1] = int32(tokens), int32(hi-lo)
		tokens += hi - lo
	}
	r.to[side] = i
	s[0], s[1] = int32(tokens), int32(i-r.from[side])
	r.side = side
	r.c.Engine.For(i-r.from[side], 1, pack)
}

// rowsOf returns the rows of sequence i of the block, as an operand has them and packed.
func (r *run) rowsOf(k, i int, operand, packed []float32) (of, in []float32) {
	channels := r.channels[k]
	lo, _ := r.part(r.side, r.from[r.side]+i)
	at, n := r.spans[r.side].of(i)
	first := (r.from[r.side]+i)*r.scores.side(r.side).Len + lo
	return operand[first*channels:][:n*channels], packed[at*channels:][:n*channels]
}

func (r *run) pack(_, lo, hi int) {
	for k := range r.packed {
		for i := lo; i < hi && r.sideOf(k) == r.side; i++ {
			of, in := r.rowsOf(k, i, r.c.In[k].F32, r.packed[k])
			copy(in, of)
		}
	}
}

// unpack adds the gradients of the rows of the block.
func (r *run) unpack(_, lo, hi int) {
	for k := range r.packed {
		for i := lo; i < hi && r.sideOf(k) == r.side; i++ {
			of, in := r.rowsOf(k, i, r.gradient(k), r.grads[k].F32)
			vector.Add(of, of, in)
		}
	}
}

// eachPair calls f with the places of a pair in the matrix of all and in that of the block.
func (r *run) eachPair(f func(all, block int, empty bool)) {
	query, context := r.steps()
	columns := r.spans[1].size(Sequences)
	for i := range r.spans[0].size(Sequences) {
		_, n := r.spans[0].of(i)
		for j := range columns {
			_, m := r.spans[1].of(j)
			f((r.from[0]+i)*query+(r.from[1]+j)*context, i*columns+j, n == 0 || m == 0)
		}
	}
}

func (r *run) giveScores() {
	out, from := r.c.Out.F32, r.result.F32
	r.eachPair(func(all, block int, empty bool) {
		if out[all] = from[block]; empty {
			out[all] = 0
		}
	})
}

func (r *run) takeSlopes() {
	from, to := r.c.In[r.operands].F32, r.slopes
	r.eachPair(func(all, block int, empty bool) {
		if to[block] = from[all]; empty {
			to[block] = 0
		}
	})
}
