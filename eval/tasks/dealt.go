package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
)

// piece is what encoding makes of the rows of a batch.
type piece struct {
	lengths []int32      // one of a row, or nil
	rows    [2][]float32 // as many numbers of a row each; nil: none
}

// of returns the first k of n rows, from row at on.
func (p piece) of(at, k, n int) piece {
	if p.lengths != nil {
		p.lengths = p.lengths[at:][:k]
	}
	for i, x := range p.rows {
		width := len(x) / n
		p.rows[i] = x[at*width:][:k*width]
	}
	return p
}

// dealt reads the rows of a gallery, has encode work on them and hands what it makes of k new ones to take. Where
// several processes encode together, batch number i is of rank i modulo their number. As
// many batches as there are ranks are encoded at a time and exchanged: batches are those
// of one process, and no rank holds more than one of each rank.
func (e Encoding) dealt(ctx context.Context, columns []batch.Column, g data.Gallery, phase string,
	encode func(b *batch.Batch) (piece, error), take func(p piece, k int) error) error {
	if e.ranks() == 1 {
		return e.batches(ctx, columns, g, phase, func(b *batch.Batch, k int) error {
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
	n, ranks := g.Len(), e.ranks()
	size := e.rows(columns, n)
	b := batch.New(size, columns...)
	var all piece
	for first := 0; first < n; first += size * ranks {
		own := first + size*e.Group.Rank()
		if own >= n { // the last batches: what is exchanged has one size
			own = 0
		}
		var p piece
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
func (all *piece) gather(g parallel.Group, own piece) (err error) {
	if own.lengths != nil {
		if all.lengths, err = g.GatherInts(all.lengths[:0], own.lengths); err != nil {
			return err
		}
	}
	for i, x := range own.rows {
		if len(x) == 0 {
			continue
		}
		if all.rows[i], err = g.Gather(all.rows[i][:0], x); err != nil {
			return err
		}
	}
	return nil
}
