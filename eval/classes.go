package eval

import "fmt"

// ClassMeans returns a row for each class, the mean of the features (P, C) of its prompts brought
// to unit length: the mean is of rows of the shared space, as in GeRA. It fails for a class without prompts.
func ClassMeans(features []float32, class []int32, names []string) ([]float32, error) {
	if len(class) == 0 || len(features)%len(class) != 0 {
		return nil, fmt.Errorf("eval: %d numbers are no rows of %d prompts", len(features), len(class))
	}
	c := len(features) / len(class)
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
			return nil, fmt.Errorf("eval: class %q has no prompt: add a text for it, or take its images out", names[k])
		}
	}
	return unitRows(sums, c), nil
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
