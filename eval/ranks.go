package eval

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/topk"
)

// Ranks holds the 0-based rank of every query under the package's tie rule.
type Ranks struct {
	I2T []int // per image: wrong texts before the best right one
	T2I []int // per text: wrong images before the best right one
	// Ties of the best right answer of every query, by which [Ranks.MeanMetrics] goes; nil: there are none.
	I2TTies, T2ITies []Tie
}

// Tie is how many candidates have the score of the best right answer of a query.
type Tie struct {
	Wrong int // which the rank counts as before it
	Right int // at least 1
}

// tieOf returns the tie of a query: none where ranks were made without.
func tieOf(ties []Tie, query int) Tie {
	if query < len(ties) {
		return ties[query]
	}
	return Tie{Right: 1}
}

// Source writes the scores of images row to row+n-1 against all T texts into
// dst, n x T, row by row. Calls with equal arguments must write equal bits.
type Source func(row, n int, dst []float32) error

// Matrix returns a source that reads scores, an N x T matrix held in memory.
func Matrix(scores []float32, texts int) Source {
	return func(row, n int, dst []float32) error {
		if (row+n)*texts > len(scores) {
			return fmt.Errorf("eval: score matrix has %d values, rows %d to %d of %d texts need %d", len(scores), row,
				row+n-1, texts, (row+n)*texts)
		}
		copy(dst, scores[row*texts:(row+n)*texts])
		return nil
	}
}

// Rank computes the ranks of all queries, asking source for chunk images at a
// time, twice each. It holds chunk x T scores.
func Rank(c *Correspondence, chunk int, source Source) (*Ranks, error) {
	r, err := runRanker(c, chunk, 0, source)
	if err != nil {
		return nil, err
	}
	return r.Ranks()
}

// runRanker feeds both passes of a ranker from source.
func runRanker(c *Correspondence, chunk, topK int, source Source) (*Ranker, error) {
	if chunk < 1 {
		return nil, fmt.Errorf("eval: chunk must be > 0 (got %d)", chunk)
	}
	n, t := c.NumImages(), c.NumTexts()
	chunk = min(chunk, n)
	r := NewRanker(c, topK)
	block := make([]float32, chunk*t)
	for _, pass := range []func(int, []float32) error{r.Positives, r.Count} {
		for row := 0; row < n; row += chunk {
			b := block[:min(chunk, n-row)*t]
			if err := source(row, len(b)/t, b); err != nil {
				return nil, err
			}
			if err := pass(row, b); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// Ranker accumulates ranks from blocks of rows. Feed every row once to
// Positives, then every row once to Count, then call Ranks.
type Ranker struct {
	corr      *Correspondence
	positive  []float32 // per text: its score with its best right image
	best      []int     // per text: that image, -1 before one was seen
	seen      []bool    // per image: fed to Positives
	counted   []bool    // per image: fed to Count
	numSeen   int
	ranks     Ranks
	topTexts  []candidates // per image, when candidates are kept
	topImages []candidates // per text
}

func newRanks(n, t int) Ranks {
	return Ranks{I2T: make([]int, n), T2I: make([]int, t), I2TTies: make([]Tie, n), T2ITies: make([]Tie, t)}
}

// NewRanker returns a ranker for the gallery of c. With topK > 0 it also keeps
// the topK best candidates of every query, for [Ranker.Candidates].
func NewRanker(c *Correspondence, topK int) *Ranker {
	n, t := c.NumImages(), c.NumTexts()
	r := &Ranker{
		corr:     c,
		positive: make([]float32, t),
		best:     slices.Repeat([]int{-1}, t),
		seen:     make([]bool, n),
		counted:  make([]bool, n),
		ranks:    newRanks(n, t),
	}
	if topK > 0 {
		r.topTexts = topk.NewLists[candidate](n, min(topK, t))
		r.topImages = topk.NewLists[candidate](t, min(topK, n))
	}
	return r
}

// Positives is the first pass: block holds the scores of images row, row+1, ...
// against all T texts.
func (r *Ranker) Positives(row int, block []float32) error {
	if err := r.check(row, block, r.seen); err != nil {
		return err
	}
	t := r.corr.NumTexts()
	for b := 0; b < len(block); b += t {
		i := row + b/t
		for _, j := range r.corr.texts(i) {
			if s := block[b+j]; r.best[j] < 0 || s > r.positive[j] {
				r.positive[j], r.best[j] = s, i
			}
		}
		r.seen[i] = true
		r.numSeen++
	}
	return nil
}

// Count is the second pass over the same blocks, cut in any way. It fails on
// NaN, and when the best positive of a text differs from what the first pass saw.
func (r *Ranker) Count(row int, block []float32) error {
	if r.numSeen < len(r.seen) {
		return fmt.Errorf("eval: Count called when Positives had seen %d of %d images: finish the first pass before the second", r.numSeen, len(r.seen))
	}
	if err := r.check(row, block, r.counted); err != nil {
		return err
	}
	t := r.corr.NumTexts()
	for b := 0; b < len(block); b += t {
		i := row + b/t
		if err := r.countRow(i, block[b:b+t]); err != nil {
			return err
		}
		r.counted[i] = true
	}
	return nil
}

// countRow adds image i's scores to its own rank and to those of all texts.
func (r *Ranker) countRow(i int, scores []float32) error {
	right := r.corr.texts(i)
	best := float32(math.Inf(-1))
	for _, j := range right {
		if err := r.repeated(i, j, scores[j]); err != nil {
			return err
		}
		best = max(best, scores[j])
	}
	before, tie := 0, Tie{}
	for j, s := range scores {
		if s != s {
			return nanScore(i, j)
		}
		if s >= best {
			before++ // right texts are taken out below
			if s == best {
				tie.Wrong++
			}
		}
		if s >= r.positive[j] {
			r.ranks.T2I[j]++ // right images are taken out below
			if s == r.positive[j] {
				r.ranks.T2ITies[j].Wrong++
			}
		}
	}
	for _, j := range right {
		if scores[j] >= best {
			before--
			tie.Wrong, tie.Right = tie.Wrong-1, tie.Right+1 // nothing right is above the best
		}
		if scores[j] >= r.positive[j] {
			r.ranks.T2I[j]--
			r.ranks.T2ITies[j].Wrong--
			r.ranks.T2ITies[j].Right++
		}
	}
	r.ranks.I2T[i], r.ranks.I2TTies[i] = before, tie
	if r.topTexts != nil {
		for j, s := range scores {
			right := r.corr.right(i, j)
			r.topTexts[i].Add(candidate{int32(j), s, right})
			r.topImages[j].Add(candidate{int32(i), s, right})
		}
	}
	return nil
}

// nanScore is the error of a score that is NaN.
func nanScore(image, text int) error {
	return &NonFiniteError{fmt.Sprintf("eval: score of image %d and text %d is NaN", image, text),
		"look for the first NaN in the embeddings"}
}

// repeated compares s, the score of image i and its right text j, with what the first pass
// kept of text j. NaN is told by whoever reads the whole row.
func (r *Ranker) repeated(i, j int, s float32) error {
	first, was := r.positive[j], ""
	switch {
	case r.best[j] != i:
		if !(s > first) {
			return nil
		}
		was = "at most "
	case s != s || math.Float32bits(s) == math.Float32bits(first):
		return nil
	}
	return fmt.Errorf("eval: score of image %d and text %d was %s%g in the first pass and is %g in the second: the source must repeat its numbers exactly", i, j, was, first, s)
}

// check reports a block that does not fit or repeats a row of done.
func (r *Ranker) check(row int, block []float32, done []bool) error {
	n, t := r.corr.NumImages(), r.corr.NumTexts()
	if len(block)%t != 0 || row < 0 || row+len(block)/t > n {
		return fmt.Errorf("eval: block of %d scores at row %d does not fit %d images x %d texts", len(block), row, n, t)
	}
	for i := row; i < row+len(block)/t; i++ {
		if done[i] {
			return fmt.Errorf("eval: image %d was fed twice in one pass", i)
		}
	}
	return nil
}

// Ranks returns the ranks once every row went through both passes.
func (r *Ranker) Ranks() (*Ranks, error) {
	for i, ok := range r.counted {
		if !ok {
			return nil, fmt.Errorf("eval: image %d was not fed to Count: ranks need all %d images", i, len(r.counted))
		}
	}
	return &r.ranks, nil
}
