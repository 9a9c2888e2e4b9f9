package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// writing is the compiled computation of the next token of R texts. Keys and values of tokens that have been read lie in a
// cache, of whose places each token names those of the tokens before it: texts that begin alike share them.
type writing struct {
	p       *Pairs
	machine *exec.Machine
	read    *reading // of the batch
	logits  *gorgonia.Node
	own     gorgonia.Nodes // of each layer (R, 2D)
	states  gorgonia.Nodes // of each layer (N*T, 2D), inputs

	ids, positions, of, lengths, seen, before []int32     // inputs, (R) each, before (R*P)
	cache                                     [][]float32 // of each layer (C, 2D)
	rows, past, width                         int         // R, P and 2D
}

// written is a token that is read next.
type written struct {
	id     int32
	row    int     // of the batch
	before []int32 // places in the cache of the tokens before it
	place  int     // where its keys and values go, -1: nowhere
}

// writing returns the computation for rows tokens at a time behind at most past others with so many places in the cache, built
// when it is first asked for, on what was read of a batch.
func (p *Pairs) writing(r *reading, rows, past, places int) (x *writing, err error) {
	key := [4]int{r.n, rows, past, places}
	if x := p.writings[key]; x != nil {
		x.read = r
		return x, x.bind()
	}
	defer op.Catch(&err)
	b, d := newNet(p.params), newDecoder(p.cfg, p.o)
	x = &writing{p: p, read: r, rows: rows, past: past, width: 2 * d.Width}
	ints := func(name string, memory *[]int32, n int) *gorgonia.Node {
		*memory = make([]int32, n)
		return b.inputs.SharedInts(name, *memory, n)
	}
	a := encoders.NextArgs{
		IDs: ints("tokens", &x.ids, rows), Positions: ints("positions", &x.positions, rows),
		Before: ints("before", &x.before, rows*past), Seen: ints("seen", &x.seen, rows), PastLen: past,
		Index: ints("sequence", &x.of, rows), StateLengths: ints("state lengths", &x.lengths, rows), StateLen: r.len,
	}
	for i := range d.FusionLayers {
		x.cache = append(x.cache, make([]float32, places*x.width))
		a.Past = append(a.Past, b.inputs.SharedFloats(layerName("past", i), x.cache[i], places, x.width))
		a.Keys = append(a.Keys, b.inputs.Unbound(layerName("states", i), batch.Float32, r.n*r.len, x.width))
	}
	x.states = a.Keys
	scope := encoders.NewScope(b.params).As(encoders.Traits{Twin: p.design.teacher})
	x.logits, x.own = d.Next(scope.In("decoder"), a)
	if x.machine, err = b.compileEval(exec.Config{Engine: p.engine}, append(gorgonia.Nodes{x.logits}, x.own...)...); err != nil {
		return nil, err
	}
	if p.writings == nil {
		p.writings = map[[4]int]*writing{}
	}
	p.writings[key] = x
	return x, x.bind()
}

// bind gives the computation the keys and values of the states.
func (x *writing) bind() error {
	for i, n := range x.states {
		if err := x.machine.SetInput(n, x.read.keys[i]); err != nil {
			return err
		}
	}
	return nil
}

// next reads tokens, and calls visit with the number of each and the logits (V) of the token behind it, on several threads.
func (x *writing) next(ctx context.Context, tokens []written, visit func(i int, logits []float32)) error {
	for lo := 0; lo < len(tokens); lo += x.rows {
		part := tokens[lo:min(lo+x.rows, len(tokens))]
		x.set(part)
		if err := x.machine.Run(ctx); err != nil {
			return err
		}
		if err := x.keep(part); err != nil {
			return err
		}
		logits, err := x.machine.Value(x.logits)
		if err != nil {
			return err
		}
		v := logits.Dim(1)
		x.p.engine.For(len(part), 1, func(_, from, to int) {
			for i := from; i < to; i++ {
				visit(lo+i, logits.F32[i*v:(i+1)*v])
			}
		})
	}
	return nil
}

// set writes the inputs for tokens; the rest of the rows reads the first token that there is.
func (x *writing) set(tokens []written) {
	for i := range x.rows {
		t := written{place: -1}
		if i < len(tokens) {
			t = tokens[i]
		}
		x.ids[i], x.positions[i], x.seen[i] = t.id, int32(len(t.before)), int32(1+len(t.before))
		x.of[i] = x.read.of[t.row]
		x.lengths[i] = x.read.lengths[x.of[i]]
		before := x.before[i*x.past:][:x.past]
		clear(before[copy(before, t.before):])
	}
}

// keep puts the keys and values of tokens into the cache.
func (x *writing) keep(tokens []written) error {
	for layer, n := range x.own {
		v, err := x.machine.Value(n)
		if err != nil {
			return err
		}
		for i, t := range tokens {
			if t.place >= 0 {
				copy(x.cache[layer][t.place*x.width:][:x.width], v.F32[i*x.width:])
			}
		}
	}
	return nil
}

// layerName names an input of layer i.
func layerName(what string, i int) string { return fmt.Sprintf("%s %d", what, i) }
