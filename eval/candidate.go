package eval

import "github.com/geoalign/geoalign/internal/topk"

// candidate is an entry of a query's list of best candidates.
type candidate struct {
	index int32
	score float32
	right bool // a positive of the query
}

// Before is the total order of candidates: higher scores first; among equal
// scores wrong candidates before positives (the package's tie rule), then the
// lower index.
func (a candidate) Before(b candidate) bool {
	switch {
	case a.score != b.score:
		return a.score > b.score
	case a.right != b.right:
		return b.right
	}
	return a.index < b.index
}

// candidates are the best of a query.
type candidates = topk.List[candidate]

// lists returns the indices and scores of the best of every query, the best first.
func lists(best []candidates) (indices [][]int, scores [][]float32) {
	indices, scores = make([][]int, len(best)), make([][]float32, len(best))
	for q := range best {
		for _, c := range best[q].Sorted() {
			indices[q], scores[q] = append(indices[q], int(c.index)), append(scores[q], c.score)
		}
	}
	return indices, scores
}
