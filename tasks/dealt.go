package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
)

// Piece is what encoding makes of the rows of a batch.
type Piece struct {
	Lengths []int32      // one of a row, or nil
	Rows    [2][]float32 // as many numbers of a row each; nil: none
}

// of returns the first k of n rows, from row at on.
func (p Piece) of(at, k, n int) Piece {
	if p.Lengths != nil {
		p.Lengths = p.Lengths[at:][:k]
	}
	for i, x := range p.Rows {
		width := len(x) / n
		p.Rows[i] = x[at*width:][:k*width]
	}
	return p
}

// Dealt reads the rows of a gallery, has encode work on them and hands what it makes of k new ones to take. Where
// several processes encode together, batch number i is of rank i modulo their number. As
// many batches as there are ranks are encoded at a time and exchanged: batches are those
// of one process, and no rank holds more than one of each rank.
func (e Encoding) Dealt(ctx context.Context, columns []batch.Column, g data.Gallery, phase string,
	encode func(b *batch.Batch) (Piece, error), take func(p Piece, k int) error) error {
	if e.Ranks() == 1 {
		return e.Batches(ctx, columns, g, phase, func(b *batch.Batch, k int) error {
			p, err := encode(b)
			if err != nil {
				return err
			}
			return take(p.of(0, k, b.Rows()), k)
		})
	}
	if e.BatchSize < 1 {
		return fmt.Errorf("tasks: eval.batch_size must be at least 1 (got %d)", e.BatchSize)
	}
	n, ranks := g.Len(), e.Ranks()
	size := e.rows(columns, n)
	b := batch.New(size, columns...)
	var all Piece
	for first := 0; first < n; first += size * ranks {
		own := first + size*e.Group.Rank()
		if own >= n { // the last batches: what is exchanged has one size
			own = 0
		}
		var p Piece
		err := data.LoadRows(ctx, g, own, min(size, n-own), b, max(1, e.Workers))
		if err == nil {
			p, err = encode(b)
		}
		if err := parallel.Agree(e.Group, err); err != nil {
			return err
		}
		if err := all.gather(e.Group, p); err != nil {
			return err
		}
		for r := 0; r < ranks && first+r*size < n; r++ {
			done := min(n, first+(r+1)*size)
			if err := take(all.of(r*size, done-first-r*size, size*ranks), done-first-r*size); err != nil {
				return err
			}
			if e.Progress != nil {
				e.Progress(phase, done, n)
			}
		}
	}
	return nil
}

// gather sets all to the pieces of all ranks, one after the other.
func (all *Piece) gather(g parallel.Group, own Piece) (err error) {
	if own.Lengths != nil {
		if all.Lengths, err = g.GatherInts(all.Lengths[:0], own.Lengths); err != nil {
			return err
		}
	}
	for i, x := range own.Rows {
		if len(x) == 0 {
			continue
		}
		if all.Rows[i], err = g.Gather(all.Rows[i][:0], x); err != nil {
			return err
		}
	}
	return nil
}
