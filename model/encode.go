package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/exec"
)

// Encoder is one side of a model for inference. Rows of a batch pass through it a few at a time, texts in the order of
// their length, so that little is computed for padding; see cutter. What a row gives does not depend on the rows
// beside it but for rounding.
type Encoder struct {
	p    *Pairs
	side *side
	kept encodings
	cut  cutter
	out  [askings]encoded
}

// asking says what is read of a tower, and so what is computed.
type asking int

const (
	readStates   asking = iota // states of all tokens, and features
	readFeatures               // features alone
	readClasses                // class tokens alone, before the head
	readTokens                 // all tokens in the shared space
	askings
)

// encoded is what a batch gave by one of them, in memory that the next call takes again.
type encoded struct {
	states   []float32 // (n*Len, D)
	classes  []float32 // (n*m, D)
	features []float32 // (n, C), or of tokens (n*Len, C) before their norm
	lengths  []int32   // (n), of tokens
}

// Columns are the columns of a batch that Encode reads.
func (e *Encoder) Columns() []batch.Column { return e.side.tower.Columns() }

// Len returns the tokens of a row: T of images, L of texts.
func (e *Encoder) Len() int {
	n, _ := e.side.tower.Shape()
	return n
}

// Width returns D, the width of a token.
func (e *Encoder) Width() int {
	_, d := e.side.tower.Shape()
	return d
}

// Dim returns C, the channels of the shared space.
func (e *Encoder) Dim() int { return e.side.head.Dimension() }

// Encode runs the tower and the head over the rows of b without dropout. It returns the
// token states (n*Len, D), the first class token and the patches or words of each row,
// and features (n, C). States of padding mean nothing. The next call overwrites both. It ends early with the
// error of ctx.
func (e *Encoder) Encode(ctx context.Context, b *batch.Batch) (states, features []float32, err error) {
	x, err := e.run(ctx, b, readStates)
	return x.states, x.features, err
}

// Features is Encode for callers that read no states: features (n, C). The last block of a tower then computes
// nothing but what stands for a row.
func (e *Encoder) Features(ctx context.Context, b *batch.Batch) ([]float32, error) {
	x, err := e.run(ctx, b, readFeatures)
	return x.features, err
}

// EncodeClasses runs the tower alone: all m class tokens of each row of b one after the
// other, (n, m*D). The same holds for it as for Encode.
func (e *Encoder) EncodeClasses(ctx context.Context, b *batch.Batch) ([]float32, error) {
	x, err := e.run(ctx, b, readClasses)
	return x.classes, err
}

// Forget frees the memory of computations, which the next call compiles again.
func (e *Encoder) Forget() {
	for _, x := range e.kept.nets { // what a device does not take back now, it does in the end
		_ = e.p.params.held.drop(x.machine)
	}
	_ = e.kept.room.Close()
	e.kept, e.out = encodings{}, [askings]encoded{}
}

// Profile returns the time that ops took so far, of all computations that are kept, and the bytes that these hold.
func (e *Encoder) Profile() (list []exec.Profile, bytes int64) { return e.kept.profile() }

// ResetProfile starts the profile anew.
func (e *Encoder) ResetProfile() { e.kept.resetProfile() }

// StepByStep has a device run the ops of the computations that are kept one by one, so that the times of a profile are those of
// each, see compute.Machine.
func (e *Encoder) StepByStep(on bool) {
	for _, x := range e.kept.nets {
		x.machine.StepByStep(on)
	}
}

// run encodes a batch, chunk by chunk.
func (e *Encoder) run(ctx context.Context, b *batch.Batch, of asking) (encoded, error) {
	if b.Rows() < 1 {
		return encoded{}, errors.New("model: a batch to encode has no rows")
	}
	for _, c := range e.Columns() {
		if got := len(b.Floats(c.Name)) + len(b.Ints(c.Name)); got != b.Rows()*c.Len() {
			return encoded{}, fmt.Errorf("model: %s: got %d values, want %d rows of %d: give batches with all columns of the tower", c.Name, got, b.Rows(), c.Len())
		}
	}
	out := &e.out[of]
	for _, p := range e.cut.chunks(b, e.Len(), e.shortens()) {
		x, err := e.encoding(shape{p.rows, p.places, of})
		if err != nil {
			return encoded{}, err
		}
		if err := x.fill(b, e.cut.order[p.first:p.first+p.rows]); err != nil {
			return encoded{}, err
		}
		if err := x.machine.Run(ctx); err != nil {
			return encoded{}, err
		}
		if err := x.store(out, b.Rows(), e.Len(), e.cut.order[p.first:p.first+p.rows]); err != nil {
			return encoded{}, err
		}
	}
	return *out, nil
}
