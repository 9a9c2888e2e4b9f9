package eval

import (
	"cmp"
	"fmt"
	"slices"
)

// NoCamera is the camera of an image of which none is known.
const NoCamera = -1

// Item is an image as re-identification sees it.
type Item struct {
	Image  int   // its number: an image is not a candidate of itself
	ID     int64 // of what it shows; images of one id are right answers for each other
	Camera int32 // that took it, or NoCamera
}

// ignored says whether a gallery item is not a candidate of a query: it is the same image, or one of
// the same id by the same camera (the rule of Market-1501, Zheng et al. 2015).
func (q Item) ignored(x Item) bool {
	return q.Image == x.Image || q.ID == x.ID && q.Camera == x.Camera && q.Camera != NoCamera
}

// Identities is how well images find others of their id, in percent, mean over the queries
// that have a right answer among their candidates. Ties count against the right answers, as in Rank.
type Identities struct {
	MAP float64 // mean over the right answers of the precision down to each (average precision)
	// right answers over the place of the last one (Ye et al. 2022, "mean inverse negative penalty")
	MINP              float64
	R1, R5, R10, R100 float64 // queries with a right answer among the first k (CMC)

	Queries   int // that are in the means
	Unmatched int // queries without a right answer, left out
	Gallery   int // images that are searched

	ChanceMAP, ChanceR1 float64 // of a random order
}

// Values returns the measures in the order of tables.
func (r Identities) Values() Values {
	return Values{{"map", r.MAP}, {"minp", r.MINP}, {"r1", r.R1}, {"r5", r.R5}, {"r10", r.R10}, {"r100", r.R100}}
}

// hit is a candidate of a query.
type hit struct {
	score float32
	right bool
}

// MeasureIdentities searches the gallery for each query. source writes the scores of queries row to
// row+n-1 with all of the gallery, (n, len(gallery)), for chunk queries at a time. It holds
// chunk x len(gallery) scores. A score of NaN is a *NonFiniteError.
func MeasureIdentities(queries, gallery []Item, chunk int, source Source) (Identities, error) {
	r := Identities{Gallery: len(gallery)}
	if len(queries) == 0 || len(gallery) == 0 {
		return r, fmt.Errorf("eval: %d queries and a gallery of %d images: give each at least one", len(queries),
			len(gallery))
	}
	chunk = max(1, min(chunk, len(queries)))
	block, hits := make([]float32, chunk*len(gallery)), make([]hit, 0, len(gallery))
	for row := 0; row < len(queries); row += chunk {
		n := min(chunk, len(queries)-row)
		if err := source(row, n, block[:n*len(gallery)]); err != nil {
			return r, err
		}
		for i, q := range queries[row : row+n] {
			hits = hits[:0]
			for j, s := range block[i*len(gallery):][:len(gallery)] {
				if s != s {
					return r, &NonFiniteError{fmt.Sprintf("eval: score of query %d and gallery image %d is NaN", row+i,
						j), "look for the first NaN in the embeddings"}
				}
				if x := gallery[j]; !q.ignored(x) {
					hits = append(hits, hit{s, x.ID == q.ID})
				}
			}
			r.add(hits)
		}
	}
	if r.Queries == 0 {
		return r, fmt.Errorf("eval: none of the %d queries has an image of its id in the gallery that another camera took: give ids that occur more than once", len(queries))
	}
	for _, v := range []*float64{&r.MAP, &r.MINP, &r.R1, &r.R5, &r.R10, &r.R100, &r.ChanceMAP, &r.ChanceR1} {
		*v *= 100 / float64(r.Queries)
	}
	return r, nil
}

// add adds the sums of one query, whose candidates it sorts.
func (r *Identities) add(hits []hit) {
	slices.SortFunc(hits, func(a, b hit) int {
		switch {
		case a.score != b.score:
			return cmp.Compare(b.score, a.score)
		case a.right == b.right:
			return 0
		case a.right:
			return 1
		}
		return -1
	})
	found, first, last, precision := 0, 0, 0, 0.
	for place, h := range hits {
		if !h.right {
			continue
		}
		found++
		last = place + 1
		if found == 1 {
			first = last
		}
		precision += float64(found) / float64(last)
	}
	if found == 0 {
		r.Unmatched++
		return
	}
	r.Queries++
	r.MAP += precision / float64(found)
	r.MINP += float64(found) / float64(last)
	for k, v := range map[int]*float64{1: &r.R1, 5: &r.R5, 10: &r.R10, 100: &r.R100} {
		if first <= k {
			*v++
		}
	}
	r.ChanceR1 += float64(found) / float64(len(hits))
	r.ChanceMAP += chanceAP(found, len(hits))
}

// chanceAP is the expected average precision of a random order of n candidates, of which right are:
// at place i the precision to a right answer is (1 + (i-1)(right-1)/(n-1))/i in the mean.
func chanceAP(right, n int) float64 {
	if n == 1 {
		return 1
	}
	share, sum := float64(right-1)/float64(n-1), 0.
	for i := 1; i <= n; i++ {
		sum += (1 + float64(i-1)*share) / float64(i)
	}
	return sum / float64(n)
}
