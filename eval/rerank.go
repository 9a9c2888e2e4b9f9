package eval

import "fmt"

// Candidates holds the best candidates of every query by the first score, the
// best first: higher scores first, among equal scores wrong candidates before
// positives, then lower indices. So a query's best positive is among its k
// candidates exactly when its rank is below k.
type Candidates struct {
	Texts  [][]int // per image
	Images [][]int // per text

	textScores, imageScores [][]float32 // by the first score, alike; nil of lists that no Ranker made
}

// Candidates returns the lists that were kept; nil when NewRanker was told to
// keep none. Every row must have been fed to Count.
func (r *Ranker) Candidates() *Candidates {
	if r.topTexts == nil {
		return nil
	}
	c := &Candidates{}
	c.Texts, c.textScores = lists(r.topTexts)
	c.Images, c.imageScores = lists(r.topImages)
	return c
}

// Share returns the lists of a share of the queries, those of a rank of so many; the others are empty. Images and
// texts are cut into equal shares of consecutive ones each, of which the last may be shorter.
func (c *Candidates) Share(rank, ranks int) *Candidates {
	return &Candidates{Texts: ofShare(c.Texts, rank, ranks), Images: ofShare(c.Images, rank, ranks),
		textScores: ofShare(c.textScores, rank, ranks), imageScores: ofShare(c.imageScores, rank, ranks)}
}

// ofShare returns the lists of a share, and nothing of the others.
func ofShare[T any](lists [][]T, rank, ranks int) [][]T {
	out := make([][]T, len(lists))
	lo, hi := ShareOf(len(lists), rank, ranks)
	copy(out[lo:hi], lists[lo:hi])
	return out
}

// ShareOf returns the queries [lo, hi) of n that are a rank's share.
func ShareOf(n, rank, ranks int) (lo, hi int) {
	size := (n + ranks - 1) / ranks
	return min(n, rank*size), min(n, (rank+1)*size)
}

// PairScorer scores candidates with a slower model, such as the matching head
// on fused tokens. dst has the length of the candidate list, and holds the
// first scores, or zeros of lists that no Ranker made.
type PairScorer interface {
	// ScoreTexts scores texts for one image.
	ScoreTexts(image int, texts []int, dst []float32) error
	// ScoreImages scores images for one text.
	ScoreImages(text int, images []int, dst []float32) error
}

// Rerank returns the ranks after the candidates were scored again (ALBEF,
// evaluation step two). What the scorer makes of both scores orders them. Each
// direction has its own lists, so one pair can be scored twice.
//
// Candidates outside a query's list stay behind all candidates inside, in the
// order of the first score: a query with no positive in its list keeps its
// first rank, which is k or more; so does one without a list. ALBEF's code fills those cells with -100 and
// sorts; ranks of queries with a positive in the list are the same there, ranks
// of the others depend on its sort. R@k of both agree for k up to the length of
// the lists. A second score of NaN is a *NonFiniteError.
func Rerank(c *Correspondence, first *Ranks, cand *Candidates, scorer PairScorer) (*Ranks, error) {
	ranks := newRanks(c.NumImages(), c.NumTexts())
	out := &ranks
	var scores []float32
	for i, texts := range cand.Texts {
		if len(texts) == 0 {
			out.I2T[i], out.I2TTies[i] = first.I2T[i], tieOf(first.I2TTies, i)
			continue
		}
		scores = firstScores(scores, cand.textScores, i, len(texts))
		if err := scorer.ScoreTexts(i, texts, scores); err != nil {
			return nil, err
		}
		if k := firstNaN(scores); k >= 0 {
			return nil, &NonFiniteError{fmt.Sprintf("eval: second score of image %d and text %d is NaN", i, texts[k]),
				"look for the first NaN in the fused features"}
		}
		rank, tie, ok := rankInList(scores, func(k int) bool { return c.right(i, texts[k]) })
		if !ok {
			rank, tie = first.I2T[i], tieOf(first.I2TTies, i)
		}
		out.I2T[i], out.I2TTies[i] = rank, tie
	}
	for j, images := range cand.Images {
		if len(images) == 0 {
			out.T2I[j], out.T2ITies[j] = first.T2I[j], tieOf(first.T2ITies, j)
			continue
		}
		scores = firstScores(scores, cand.imageScores, j, len(images))
		if err := scorer.ScoreImages(j, images, scores); err != nil {
			return nil, err
		}
		if k := firstNaN(scores); k >= 0 {
			return nil, &NonFiniteError{fmt.Sprintf("eval: second score of image %d and text %d is NaN", images[k], j),
				"look for the first NaN in the fused features"}
		}
		rank, tie, ok := rankInList(scores, func(k int) bool { return c.right(images[k], j) })
		if !ok {
			rank, tie = first.T2I[j], tieOf(first.T2ITies, j)
		}
		out.T2I[j], out.T2ITies[j] = rank, tie
	}
	return out, nil
}

// RankAndKeep ranks by source and keeps the topK candidates of each query.
func RankAndKeep(c *Correspondence, chunk, topK int, source Source) (first *Ranks, cand *Candidates, err error) {
	if topK < 1 {
		return nil, nil, fmt.Errorf("eval: topK must be > 0 to re-rank (got %d)", topK)
	}
	r, err := runRanker(c, chunk, topK, source)
	if err != nil {
		return nil, nil, err
	}
	if first, err = r.Ranks(); err != nil {
		return nil, nil, err
	}
	return first, r.Candidates(), nil
}

// firstScores fills dst with the n first scores of a query, or zeros where there are none.
func firstScores(dst []float32, of [][]float32, query, n int) []float32 {
	dst = resize(dst, n)
	clear(dst)
	if of != nil {
		copy(dst, of[query])
	}
	return dst
}

// RankAndRerank ranks by source, keeps the topK candidates of each query, has
// them scored again and returns both ranks.
func RankAndRerank(c *Correspondence, chunk, topK int, source Source, scorer PairScorer) (first, second *Ranks,
	err error) {
	first, cand, err := RankAndKeep(c, chunk, topK, source)
	if err != nil {
		return nil, nil, err
	}
	second, err = Rerank(c, first, cand, scorer)
	return first, second, err
}

// rankInList counts the wrong candidates at or above the best positive, and what ties with it. It
// reports false when the list has no positive.
func rankInList(scores []float32, right func(k int) bool) (rank int, tie Tie, ok bool) {
	best := -1
	for k := range scores {
		if right(k) && (best < 0 || scores[k] > scores[best]) {
			best = k
		}
	}
	if best < 0 {
		return 0, tie, false
	}
	for k, s := range scores {
		switch {
		case s < scores[best]:
		case right(k):
			tie.Right++
		default:
			rank++
			if s == scores[best] {
				tie.Wrong++
			}
		}
	}
	return rank, tie, true
}

// firstNaN returns the index of the first NaN, -1 without one.
func firstNaN(scores []float32) int {
	for k, s := range scores {
		if s != s {
			return k
		}
	}
	return -1
}

func resize(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
