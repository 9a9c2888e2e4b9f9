package data

import (
	"context"
	"fmt"
	"sync"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/files"
)

// Gallery is rows of columns in an order that never changes: what a tower encodes for
// an evaluation. Methods may be called from several goroutines.
type Gallery interface {
	// Len is the number of rows.
	Len() int
	// Columns returns what a row can hold.
	Columns() []Column
	// Fill writes every column of row, which are some of Columns, of row i of the
	// gallery. An error names what cannot be read and ends the evaluation.
	Fill(i int, row batch.Row) error
}

// Galleries is a split for retrieval: a gallery of images and one of texts, each text
// belonging to one image. Images of one id are right answers for each other's texts.
type Galleries interface {
	Images() Gallery
	// Texts is the gallery of texts. t says how those that are written words become
	// columns; data without words does not need it.
	Texts(t *Texts) (Gallery, error)
	TextImage(j int) int // row of the image of text j
	ImageID(i int) int64 // id of image i
}

// LoadRows writes the rows first, first+1, ... of a gallery to the rows 0 to n-1 of b,
// with several goroutines. It fails where g does not give a column of b, else with the
// *RowError of the lowest row that failed, if any.
func LoadRows(ctx context.Context, g Gallery, first, n int, b *batch.Batch, workers int) error {
	if n <= 0 || n > b.Rows() || first < 0 || first+n > g.Len() {
		return fmt.Errorf("data: rows %d to %d of %d do not fit a batch of %d", first, first+n, g.Len(), b.Rows())
	}
	if err := batch.Check(b.Columns(), g.Columns()); err != nil {
		return err
	}
	return each(ctx, n, workers, func(i int) error {
		if err := g.Fill(first+i, b.Row(i)); err != nil {
			if files.Exhausted(err) {
				return exhausted(err)
			}
			return &RowError{first + i, err}
		}
		return nil
	})
}

// each calls f for 0 to n-1 on several goroutines and returns the error of the lowest
// number that failed. When ctx ends it does not wait for calls in progress, which may hang
// on a file.
func each(ctx context.Context, n, workers int, f func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(max(workers, 1), n) {
		wg.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer wg.Wait()
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	select {
	case <-ctx.Done():
	case <-done:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// eachTold is each that tells progress, if not nil, after each call, from one goroutine at a time.
func eachTold(ctx context.Context, n, workers int, progress func(done, of int), f func(i int) error) error {
	var mu sync.Mutex
	done := 0
	return each(ctx, n, workers, func(i int) error {
		err := f(i)
		mu.Lock()
		defer mu.Unlock()
		if done++; progress != nil && ctx.Err() == nil {
			progress(done, n)
		}
		return err
	})
}

// Images is the gallery of images: batch.Images (3, S, S), resized and normalised, the columns of
// a Columned data set, and batch.Labels.
func (e *Eval) Images() Gallery { return evalImages{e} }

// Texts is the gallery of texts: the columns of t.
func (e *Eval) Texts(t *Texts) (Gallery, error) {
	if t == nil {
		return nil, fmt.Errorf("data: captions need a tokenizer to become columns")
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	return evalTexts{e, t}, nil
}

type evalImages struct{ e *Eval }

func (g evalImages) Len() int { return g.e.NumImages() }

func (g evalImages) Columns() []Column {
	images := columnsOfImages(g.e.ds, []Column{{Name: batch.Images, Shape: []int{3, g.e.size, g.e.size}}})
	return append(images, Column{Name: batch.Labels, Type: batch.Int32})
}

func (g evalImages) Fill(i int, row batch.Row) error {
	row.Set(batch.Labels, g.e.Label(i))
	if dst := row.Floats(batch.Images); dst != nil {
		if err := g.e.LoadImage(i, dst); err != nil {
			return err
		}
	}
	return fillImage(g.e.ds, g.e.images[i], row)
}

type evalTexts struct {
	e *Eval
	t *Texts
}

func (g evalTexts) Len() int          { return g.e.NumTexts() }
func (g evalTexts) Columns() []Column { return g.t.Columns() }

func (g evalTexts) Fill(j int, row batch.Row) error {
	g.t.Fill(g.e.Text(j), row)
	return nil
}
