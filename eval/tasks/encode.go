package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/data"
)

// ImageTower encodes n images (n, 3, S, S): token states (n*T, D) and features (n, C) in
// the space of the head. Both are overwritten by the next call.
type ImageTower interface {
	EncodeImages(images []float32, n int) (states, features []float32, err error)
	ImageSize() int // S
}

// TextTower encodes n texts of L token ids (n, L) with their lengths: token states
// (n*L, E) and features (n, C). Both are overwritten by the next call.
type TextTower interface {
	EncodeTexts(ids, lengths []int32, n int) (states, features []float32, err error)
	TextTokens() int // L
}

// Texts are what EncodeTexts encodes; a data.EvalSet has them.
type Texts interface {
	NumTexts() int
	Text(j int) string
}

// Encoding says how a split is encoded.
type Encoding struct {
	BatchSize int // images or texts at a time, at least 1
	Workers   int // goroutines that decode images; 0: 1
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// EncodeImages runs an image tower over all images and hands each batch to take: the
// number k of images that are new, their token states (k*T, D) and features (k, C), valid
// until take returns. A short last batch is filled up with what the batch before left
// behind. It ends early with the error of ctx.
func (e Encoding) EncodeImages(ctx context.Context, m ImageTower, set data.ImageGallery, take func(k int, states, features []float32)) error {
	if err := e.check(); err != nil {
		return err
	}
	n := set.NumImages()
	b, row := min(e.BatchSize, n), 3*m.ImageSize()*m.ImageSize()
	pixels := make([]float32, b*row)
	for first := 0; first < n; first += b {
		k := min(b, n-first)
		if err := data.LoadImages(ctx, set, first, k, pixels[:k*row], max(1, e.Workers)); err != nil {
			return err
		}
		states, features, err := m.EncodeImages(pixels, b)
		if err != nil {
			return err
		}
		take(k, states[:len(states)/b*k], features[:len(features)/b*k])
		e.progress("encoding images", first+k, n)
	}
	return nil
}

// EncodeTexts runs a text tower over all texts and hands each batch to take, as
// EncodeImages does, with the lengths (k) of the texts in tokens.
func (e Encoding) EncodeTexts(ctx context.Context, m TextTower, tok data.Tokenizer, set Texts, take func(k int, lengths []int32, states, features []float32)) error {
	if err := e.check(); err != nil {
		return err
	}
	n, l := set.NumTexts(), m.TextTokens()
	b := min(e.BatchSize, n)
	texts := make([]string, b)
	ids, lengths := make([]int32, b*l), make([]int32, b)
	for first := 0; first < n; first += b {
		if err := ctx.Err(); err != nil {
			return err
		}
		k := min(b, n-first)
		for i := range texts { // a short last batch repeats its last text
			texts[i] = set.Text(min(first+i, n-1))
		}
		if err := data.TokenBatch(tok, texts, l, ids, lengths); err != nil {
			return err
		}
		states, features, err := m.EncodeTexts(ids, lengths, b)
		if err != nil {
			return err
		}
		take(k, lengths[:k], states[:len(states)/b*k], features[:len(features)/b*k])
		e.progress("encoding texts", first+k, n)
	}
	return nil
}

func (e Encoding) check() error {
	if e.BatchSize < 1 {
		return fmt.Errorf("tasks: eval.batch_size must be at least 1 (got %d)", e.BatchSize)
	}
	return nil
}

func (e Encoding) progress(phase string, done, total int) {
	if e.Progress != nil {
		e.Progress(phase, done, total)
	}
}
