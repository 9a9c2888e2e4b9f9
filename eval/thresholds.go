package eval

import (
	"cmp"
	"math"
	"slices"
)

// Thresholds tell the class of a pair by its cosine: K-1 values from the largest to the least. A cosine above the first
// is of the nearest class, one above the second of the next, and so on. Thresholds beyond -1 and 1 leave classes out.
type Thresholds []float64

// FixedThresholds parts the cosines from 0 to 1 evenly among k classes: 1/2 of two, 2/3 and 1/3 of three.
func FixedThresholds(k int) Thresholds {
	var t Thresholds
	for i := k - 1; i > 0; i-- {
		t = append(t, float64(i)/float64(k))
	}
	return t
}

// Place returns how far a cosine is from the nearest class: 0 of that one, K-1 of the farthest.
func (t Thresholds) Place(cosine float64) int {
	k := 0
	for k < len(t) && !(cosine > t[k]) {
		k++
	}
	return k
}

// TuneThresholds returns the thresholds that tell most of n labelled cosines right. near lists the classes from the
// nearest to the farthest. Of several that are as good it takes the largest. In time it is n log n + n K.
func TuneThresholds(cosines []float64, labels []int32, near []int32) Thresholds {
	order := descending(cosines)
	n, k := len(order), len(near)
	// right[c][i] is the most of the first i that the classes up to near[c] tell right, and cut[c][i] where the last of
	// them begins.
	right, cut := make([][]int, k), make([][]int, k)
	for c := range k {
		right[c], cut[c] = make([]int, n+1), make([]int, n+1)
		begin, gain := 0, 0 // best start of class c for the first i, and what it gives there
		for i := range n + 1 {
			if i > 0 && labels[order[i-1]] == near[c] {
				gain++
			}
			if c > 0 && (i == n || i == 0 || cosines[order[i-1]] != cosines[order[i]]) && right[c-1][i] > gain {
				begin, gain = i, right[c-1][i]
			}
			right[c][i], cut[c][i] = gain, begin
		}
	}
	t := make(Thresholds, k-1)
	for c, i := k-1, n; c > 0; c-- {
		i = cut[c][i]
		t[c-1] = between(cosines, order, i)
	}
	return t
}

// between is a threshold that the first i of an order are above, beyond the cosines where it parts none.
func between(cosines []float64, order []int, i int) float64 {
	switch i {
	case 0:
		return 2
	case len(order):
		return -2
	}
	return (cosines[order[i-1]] + cosines[order[i]]) / 2
}

// descending is the order of the numbers from the largest to the least.
func descending(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(x[j], x[i]) })
	return order
}

// ClusterThresholds parts cosines into k clusters whose squared distances to their means are least: k-means in one
// dimension, which is exact here (Wang and Song 2011) and needs no start. The result parts the clusters. In time it is
// k n log n.
func ClusterThresholds(cosines []float64, k int) Thresholds {
	order := descending(cosines)
	n := len(order)
	sum, square := make([]float64, n+1), make([]float64, n+1)
	for i, j := range order {
		sum[i+1], square[i+1] = sum[i]+cosines[j], square[i]+cosines[j]*cosines[j]
	}
	// cost of one cluster of i to below j.
	cost := func(i, j int) float64 {
		s := sum[j] - sum[i]
		return square[j] - square[i] - s*s/float64(j-i)
	}
	best, cut := make([]float64, n+1), make([][]int, k)
	for i := 1; i <= n; i++ {
		best[i] = cost(0, i)
	}
	for c := 1; c < k; c++ {
		next := make([]float64, n+1)
		cut[c] = make([]int, n+1)
		// The best cut of i rises with i, so each half of a range needs one part of the cuts of the whole.
		var part func(lo, hi, from, to int)
		part = func(lo, hi, from, to int) {
			if lo > hi {
				return
			}
			mid := (lo + hi) / 2
			next[mid] = math.Inf(1)
			for j := max(from, c); j <= min(to, mid-1); j++ {
				if v := best[j] + cost(j, mid); v < next[mid] {
					next[mid], cut[c][mid] = v, j
				}
			}
			part(lo, mid-1, from, cut[c][mid])
			part(mid+1, hi, cut[c][mid], to)
		}
		part(c+1, n, c, n)
		best = next
	}
	t := make(Thresholds, k-1)
	for c, i := k-1, n; c > 0; c-- {
		if i > c {
			i = cut[c][i]
		} else {
			i-- // a cluster each
		}
		t[c-1] = between(cosines, order, max(i, 0))
	}
	return t
}

// MatchClusters gives each of k clusters a class of its own so that most members are of the class of their cluster: the
// assignment of the Hungarian algorithm, by trying all k! of them, as tasks have at most 3 classes. clusters and labels
// are those of each member.
func MatchClusters(clusters []int, labels []int32, k int) []int32 {
	counts := make([][]int, k)
	for c := range counts {
		counts[c] = make([]int, k)
	}
	for i, c := range clusters {
		counts[c][labels[i]]++
	}
	best, most := make([]int32, k), -1
	class, used := make([]int32, k), make([]bool, k)
	var try func(c, right int)
	try = func(c, right int) {
		if c == k {
			if right > most {
				most = right
				copy(best, class)
			}
			return
		}
		for l := range k {
			if !used[l] {
				used[l], class[c] = true, int32(l)
				try(c+1, right+counts[c][l])
				used[l] = false
			}
		}
	}
	try(0, 0)
	return best
}
