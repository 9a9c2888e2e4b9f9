package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
)

// Encoder is one side of a model; *model.Encoder is one.
type Encoder interface {
	// Columns are the columns of a batch that Encode reads.
	Columns() []batch.Column
	// Encode returns the token states (n*Len, Width) and the features (n, Dim) of the n
	// rows of b. Both are overwritten by the next call. It ends early with the error of ctx.
	Encode(ctx context.Context, b *batch.Batch) (states, features []float32, err error)
	// Features is Encode without the states, which costs less.
	Features(ctx context.Context, b *batch.Batch) ([]float32, error)
	Len() int   // tokens of a row
	Width() int // channels of a token
	Dim() int   // channels of the shared space
}

// ClassEncoder tells the class tokens of one side of a model; *model.Encoder is one.
type ClassEncoder interface {
	// Columns are the columns of a batch that EncodeClasses reads.
	Columns() []batch.Column
	// EncodeClasses returns the m class tokens of each of the n rows of b, one after the
	// other: (n, m*Width). They are overwritten by the next call. It ends early with the
	// error of ctx.
	EncodeClasses(ctx context.Context, b *batch.Batch) ([]float32, error)
}

// Encoding says how a split is encoded.
type Encoding struct {
	BatchSize int // images at a time, and rows of features, at least 1; of texts so many times texts, see rows
	Workers   int // goroutines that read rows; 0: 1
	// Group is the processes that encode together, each with the same gallery and model; nil: this one
	// alone. They deal out the batches, and each is handed all rows in their order, with the bits of one
	// process. All must call the same methods in the same order.
	Group parallel.Group
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
	// States asks for Encoded.States, which are more to compute and much to exchange.
	States bool
}

// Texts are encoded in the order of their length, so that little is computed for padding, some at a time: windows of
// so many times BatchSize, of which there are at least leastWindows where there are enough texts, for the processes.
const (
	windowBatches = 16
	leastWindows  = 4
)

// rows is the number of rows of a gallery of n with these columns that are encoded at a time. It does not depend on
// the processes.
func (e Encoding) rows(columns []batch.Column, n int) int {
	size := e.BatchSize
	if textsAlone(columns) {
		batches := (n + e.BatchSize*leastWindows - 1) / (e.BatchSize * leastWindows)
		size *= min(max(1, batches), windowBatches)
	}
	return min(size, n)
}

// textsAlone says whether rows are texts without pictures.
func textsAlone(columns []batch.Column) bool {
	_, tokens := batch.Find(columns, batch.Tokens)
	_, images := batch.Find(columns, batch.Images)
	_, regions := batch.Find(columns, batch.Regions)
	return tokens && !images && !regions
}

// Ranks is the number of processes that encode together.
func (e Encoding) Ranks() int {
	if e.Group == nil {
		return 1
	}
	return e.Group.Size()
}

// Encoded is some rows of a gallery, valid until the next ones.
type Encoded struct {
	Rows     int       // k
	Lengths  []int32   // (k) tokens of each; nil where the batch does not say
	States   []float32 // (k*Len, Width), where they are asked for
	Features []float32 // (k, Dim)
}

// Run encodes all rows of a gallery and hands them to take, some at a time, in their order. It ends early with the
// error of take or of ctx.
func (e Encoding) Run(ctx context.Context, m Encoder, g data.Gallery, phase string, take func(x Encoded) error) error {
	return e.Dealt(ctx, m.Columns(), g, phase, func(b *batch.Batch) (Piece, error) {
		p := Piece{Lengths: b.Ints(batch.Lengths)}
		var err error
		if e.States {
			p.Rows[0], p.Rows[1], err = m.Encode(ctx, b)
		} else {
			p.Rows[1], err = m.Features(ctx, b)
		}
		return p, err
	}, func(p Piece, k int) error {
		return take(Encoded{k, p.Lengths, p.Rows[0], p.Rows[1]})
	})
}

// RunClasses is Run for class tokens, before any head: take gets those of some rows, (k, m*Width).
func (e Encoding) RunClasses(ctx context.Context, m ClassEncoder, g data.Gallery, phase string,
	take func(rows int, classes []float32) error) error {
	return e.Dealt(ctx, m.Columns(), g, phase, func(b *batch.Batch) (Piece, error) {
		classes, err := m.EncodeClasses(ctx, b)
		return Piece{Rows: [2][]float32{classes}}, err
	}, func(p Piece, k int) error { return take(k, p.Rows[0]) })
}

// Batches reads the rows of a gallery and hands them to encode, of which the first k are new. Processes do
// not share this work.
func (e Encoding) Batches(ctx context.Context, columns []batch.Column, g data.Gallery, phase string,
	encode func(b *batch.Batch, k int) error) error {
	if e.BatchSize < 1 {
		return fmt.Errorf("tasks: eval.batch_size must be at least 1 (got %d)", e.BatchSize)
	}
	n := g.Len()
	b := batch.New(e.rows(columns, n), columns...)
	for first := 0; first < n; first += b.Rows() {
		k := min(b.Rows(), n-first)
		if k < b.Rows() { // the last one
			b = batch.New(k, columns...)
		}
		if err := data.LoadRows(ctx, g, first, k, b, max(1, e.Workers)); err != nil {
			return err
		}
		if err := encode(b, k); err != nil {
			return err
		}
		if e.Progress != nil {
			e.Progress(phase, first+k, n)
		}
	}
	return nil
}

// Features returns the features (n, Dim) of all rows of a gallery.
func (e Encoding) Features(ctx context.Context, m Encoder, g data.Gallery, phase string) ([]float32, error) {
	all := make([]float32, 0, g.Len()*m.Dim())
	err := e.Run(ctx, m, g, phase, func(x Encoded) error { all = append(all, x.Features...); return nil })
	return all, err
}

// ClassTokens returns the m class tokens of every row, before any head: (n, m*Width).
func (e Encoding) ClassTokens(ctx context.Context, m ClassEncoder, g data.Gallery, phase string) (all []float32,
	err error) {
	err = e.RunClasses(ctx, m, g, phase, func(_ int, x []float32) error { all = append(all, x...); return nil })
	return all, err
}
