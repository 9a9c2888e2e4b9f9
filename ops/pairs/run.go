package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
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
	memory   []*float32 // of shared operands
	from, to [2]int     // sequences of each side in the block
	side     int        // that is packed
	results  []exec.Array
	grads    []exec.Array // of what has one, in the order of that
	wrt      int          // among those
}

func (x *scores) step(c *exec.Call, back bool) (exec.Step, error) {
	r := &run{scores: x, block: x.host, c: c, back: back, memory: make([]*float32, x.floats-x.rows)}
	if n := c.Inner.Nested; n == x.device.forward || n == x.device.back {
		r.block = x.device
	}
	left := c.Scratch
	if r.block == x.device { // which has no step of its own, and whose blocks find no room there
		left = make([]float32, x.scratch(r.block, back))
	}
	take := func(n int) []float32 {
		part := left[:n:n]
		left = left[n:]
		return part
	}
	for _, n := range r.inputs[:x.rows] {
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
		for k := 0; k < len(r.block.scores) && err == nil; k++ {
			var a exec.Array
			a, err = c.Inner.Value(r.block.scores[k])
			r.results = append(r.results, a)
		}
	} else {
		r.slopes = take(r.block.slopes.Shape().TotalSize())
		err = c.Inner.SetInput(r.block.slopes, r.slopes)
		for k := 0; k < len(r.block.grads) && err == nil; k++ {
			var a exec.Array
			a, err = c.Inner.Value(r.block.grads[k])
			r.grads = append(r.grads, a)
		}
	}
	pack, unpack, add := r.pack, r.unpack, r.add
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
				for i, k := range r.block.wrt {
					if r.wrt = i; k >= x.rows {
						c.Engine.For(r.grads[i].Len(), op.ElementGrain, add)
					}
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
	for i := range r.grads {
		clear(r.gradient(i))
	}
	for k := r.rows; k < r.floats; k++ {
		if err := r.share(k); err != nil {
			return err
		}
	}
	return nil
}

// share gives the computation the memory of a shared operand.
func (r *run) share(k int) error {
	of := r.c.In[k].F32
	if len(of) > 0 && r.memory[k-r.rows] != &of[0] {
		r.memory[k-r.rows] = &of[0]
		return r.c.Inner.SetInput(r.inputs[k], of)
	}
	return nil
}

// gradient returns where gradient i goes.
func (r *run) gradient(i int) []float32 {
	if i == 0 {
		return r.c.Out.F32
	}
	return r.c.Aux[i-1].F32
}

// add adds the gradient of a shared operand.
func (r *run) add(_, lo, hi int) {
	to := r.gradient(r.wrt)[lo:hi]
	vector.Add(to, to, r.grads[r.wrt].F32[lo:hi])
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
	if r.of[k].axis == Sequences {
		first, at, n = r.from[r.side]+i, i, min(n, 1)
	}
	return operand[first*channels:][:n*channels], packed[at*channels:][:n*channels]
}

func (r *run) pack(_, lo, hi int) {
	for k := range r.packed {
		for i := lo; i < hi && r.of[k].side == r.side; i++ {
			of, in := r.rowsOf(k, i, r.c.In[k].F32, r.packed[k])
			if copy(in, of); len(in) == 0 && r.of[k].axis == Sequences {
				clear(r.packed[k][i*r.channels[k]:][:r.channels[k]])
			}
		}
	}
}

// unpack adds the gradients of the rows of the block.
func (r *run) unpack(_, lo, hi int) {
	for at, k := range r.block.wrt {
		for i := lo; i < hi && k < r.rows && r.of[k].side == r.side; i++ {
			of, in := r.rowsOf(k, i, r.gradient(at), r.grads[at].F32)
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
	out, from, others := r.c.Out.F32, r.results[0].F32, r.results[1:]
	r.eachPair(func(all, block int, empty bool) {
		if out[all] = from[block]; empty {
			out[all] = 0
		}
		for k, v := range others {
			to := &r.c.Aux[0].F32[all*len(others)+k]
			if *to = v.F32[block]; empty {
				*to = 0
			}
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
