package tasks

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
)

// Maps computes heat maps of some rows of a gallery, one after the other. of returns those of the rows of b, which have
// these numbers, as many values for each; it is overwritten by the next call. Maps ends early with the error of ctx.
func (e Encoding) Maps(ctx context.Context, columns []batch.Column, g data.Gallery, rows []int,
	of func(ctx context.Context, b *batch.Batch, rows []int) ([]float32, error)) ([]float32, error) {
	var all []float32
	at := 0
	err := e.Batches(ctx, columns, Some{Gallery: g, Rows: rows}, "drawing heat maps",
		func(b *batch.Batch, k int) error {
			now := make([]int, b.Rows())
			for i := range now { // behind the last row are rows of the batch before
				now[i] = rows[min(at+i, len(rows)-1)]
			}
			maps, err := of(ctx, b, now)
			all, at = append(all, maps[:len(maps)/b.Rows()*k]...), at+k
			return err
		})
	return all, err
}
