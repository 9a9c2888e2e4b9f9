package eval

import (
	"errors"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/space"
)

// ClassMeans returns a row for each class, the mean of the features (P, C) of its prompts brought
// back into their space sp: on spheres each part to unit length. The mean is of rows of the
// shared space, as in GeRA. It fails for a class without prompts.
func ClassMeans(features []float32, class []int32, names []string, sp space.Space) ([]float32, error) {
	if len(class) == 0 || len(features)%len(class) != 0 {
		return nil, fmt.Errorf("eval: %d numbers are not rows of %d prompts", len(features), len(class))
	}
	c := len(features) / len(class)
	if err := sp.Check(c); err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	sums, count := make([]float32, len(names)*c), make([]int, len(names))
	for i, k := range class {
		count[k]++
		row := sums[int(k)*c:][:c]
		for j, v := range features[i*c:][:c] {
			row[j] += v
		}
	}
	for k, n := range count {
		if n == 0 {
			return nil, noPrompt(names[k])
		}
		for j := range c {
			sums[k*c+j] /= float32(n)
		}
	}
	if sp.Euclid {
		return sums, nil
	}
	return unitRows(sums, c/sp.Groups()), nil
}

// ClassMeanScores sets dst (n, K) to the scores of n images for K classes, the mean of those for the
// prompts of a class: scores (n, P), class (P). It is what oblique CLIP ranks by, which no mean of
// features gives where the score is a distance. It fails for a class without prompts.
func ClassMeanScores(scores []float32, class []int32, names []string, dst []float32) error {
	p, k := len(class), len(names)
	if p == 0 || len(scores)%p != 0 || len(dst) < len(scores)/p*k {
		return fmt.Errorf("eval: %d scores are not rows of %d prompts, or there is no room for those of %d classes",
			len(scores), p, k)
	}
	count := make([]float64, k)
	for _, c := range class {
		count[c]++
	}
	if c := slices.Index(count, 0); c >= 0 {
		return noPrompt(names[c])
	}
	sums := make([]float64, k)
	for i := 0; i < len(scores)/p; i++ {
		clear(sums)
		for j, c := range class {
			sums[c] += float64(scores[i*p+j])
		}
		for c, s := range sums {
			dst[i*k+c] = float32(s / count[c])
		}
	}
	return nil
}

// noPrompt is the error of a class that no text names.
func noPrompt(name string) error {
	return fmt.Errorf("eval: class %q has no prompt: add a text for it, or take its images out", name)
}

// ClassRank is the rank of a class, from 0, by its score. A wrong class that ties comes first,
// and so does one whose score is not a number.
func ClassRank(scores []float32, class int32) int {
	rank, own := 0, scores[class]
	for k, s := range scores {
		if int32(k) != class && !(s < own) {
			rank++
		}
	}
	return rank
}

// Likeliest is the place of the largest of scores, of equal ones the first. A score that is not a number is a
// *NonFiniteError, and it is an error where there are none.
func Likeliest(scores []float32) (int, error) {
	if len(scores) == 0 {
		return 0, errors.New("eval: the likeliest of no scores: give those of at least one class")
	}
	k := slices.Index(scores, slices.Max(scores)) // which is NaN where one is, and NaN is nowhere
	if k < 0 {
		return 0, &NonFiniteError{"a score is NaN",
			"look for the first NaN in the features, or evaluate another checkpoint"}
	}
	return k, nil
}

// TakenFor is the class that an image is taken for by its scores: its own where that has rank 0, see
// ClassRank, else the best of the others, the lowest of several.
func TakenFor(scores []float32, own int32) int32 {
	if ClassRank(scores, own) == 0 {
		return own
	}
	best := int32(-1)
	for k, s := range scores {
		if k := int32(k); k != own && (best < 0 || s > scores[best]) {
			best = k
		}
	}
	return best
}
