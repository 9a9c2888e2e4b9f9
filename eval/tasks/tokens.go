package tasks

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
)

// ScoringPhase is the phase in which an interaction scores the images of a split with all its texts.
const ScoringPhase = "scoring images with all texts"

// tokens are those of a split, whose pairs an interaction scores once, in blocks of images and
// texts, since ranking reads them more than once. Memory is 4 bytes x (N*T + M*L)*C for the tokens,
// one block, and 4 bytes x N*M for the scores.
type tokens struct {
	Member
	image, text tokenSide
	progress    func(phase string, done, total int)
	scores      []float32 // (N, M)
}

// tokenSide is the encoded side of a split.
type tokenSide struct {
	e       TokenEncoder
	block   int       // rows that are scored at a time
	rows    []float32 // (n*Len, Dim)
	lengths []int32   // (n)

	// A block that is not full, filled up with rows without tokens.
	short        []float32
	shortLengths []int32
}

func (s *tokenSide) size() int { return s.e.Len() * s.e.Dim() }

// encode encodes a side.
func (s *tokenSide) encode(ctx context.Context, e Encoding, g data.Gallery, phase string) error {
	s.block = min(s.block, g.Len())
	s.rows, s.lengths = make([]float32, 0, g.Len()*s.size()), make([]int32, 0, g.Len())
	return e.dealt(ctx, s.e.Columns(), g, phase, func(b *batch.Batch) (piece, error) {
		rows, lengths, err := s.e.EncodeTokens(ctx, b)
		return piece{lengths, [2][]float32{rows}}, err
	}, func(p piece, _ int) error {
		s.rows, s.lengths = append(s.rows, p.rows[0]...), append(s.lengths, p.lengths...)
		return nil
	})
}

// take returns rows [from, from+n) as a block.
func (s *tokenSide) take(from, n int) (rows []float32, lengths []int32) {
	rows, lengths = s.rows[from*s.size():(from+n)*s.size()], s.lengths[from:from+n]
	if n == s.block {
		return rows, lengths
	}
	if s.short == nil {
		s.short, s.shortLengths = make([]float32, s.block*s.size()), make([]int32, s.block)
	}
	clear(s.short[copy(s.short, rows):])
	clear(s.shortLengths[copy(s.shortLengths, lengths):])
	return s.short, s.shortLengths
}

func (t *tokens) encode(ctx context.Context, e Encoding, _ func(image bool, x Encoded)) error {
	if err := t.text.encode(ctx, e, t.Texts, "encoding texts"); err != nil {
		return err
	}
	if err := t.image.encode(ctx, e, t.Images, "encoding images"); err != nil {
		return err
	}
	n, m := len(t.image.lengths), len(t.text.lengths)
	t.scores = make([]float32, n*m)
	if e.ranks() > 1 {
		defer func() { t.image.rows, t.text.rows = nil, nil }()
		return t.shared(ctx, e.Group, n, m)
	}
	if t.progress != nil {
		t.progress(ScoringPhase, 0, n)
	}
	for i := 0; i < n; i += t.image.block {
		k := min(t.image.block, n-i)
		if err := t.band(ctx, i, k, m); err != nil {
			return err
		}
		if t.progress != nil {
			t.progress(ScoringPhase, i+k, n)
		}
	}
	t.image.rows, t.text.rows = nil, nil
	return nil
}

// shared scores all pairs on several processes, which deal out the bands of images.
func (t *tokens) shared(ctx context.Context, g parallel.Group, n, m int) error {
	block, ranks := t.image.block, g.Size()
	var all []float32
	for first := 0; first < n; first += block * ranks {
		i := first + block*g.Rank()
		own := make([]float32, block*m)
		var err error
		if k := min(block, n-i); k > 0 {
			err = t.band(ctx, i, k, m)
			copy(own, t.scores[i*m:(i+k)*m])
		}
		if err := parallel.Agree(g, err); err != nil {
			return err
		}
		if all, err = g.Gather(all[:0], own); err != nil {
			return err
		}
		copy(t.scores[first*m:], all)
		if t.progress != nil {
			t.progress(ScoringPhase, min(n, first+block*ranks), n)
		}
	}
	return nil
}

// band scores images [i, i+n) with all m texts.
func (t *tokens) band(ctx context.Context, i, n, m int) error {
	for j := 0; j < m; j += t.text.block {
		if err := t.score(ctx, i, n, j, min(t.text.block, m-j)); err != nil {
			return err
		}
	}
	return nil
}

// score scores images [i, i+n) with texts [j, j+m).
func (t *tokens) score(ctx context.Context, i, n, j, m int) error {
	images, imageLengths := t.image.take(i, n)
	texts, textLengths := t.text.take(j, m)
	scores, err := t.Interaction.Scores(ctx, images, imageLengths, texts, textLengths)
	if err != nil {
		return err
	}
	all := len(t.text.lengths)
	for r := range n {
		copy(t.scores[(i+r)*all+j:][:m], scores[r*t.text.block:])
	}
	return nil
}

func (t *tokens) rows(ctx context.Context, row, n int, dst []float32) error {
	all := len(t.text.lengths)
	copy(dst, t.scores[row*all:(row+n)*all])
	return ctx.Err()
}
