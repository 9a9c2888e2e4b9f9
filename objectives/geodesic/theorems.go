package geodesic

import "math"

// ComponentsBound is theorem 1 of Mei et al., eq. 4: a graph of n centres each of which
// has at least neighbours neighbours has at most this many connected components,
//
//	n * (1 + ln(1+neighbours)) / (1+neighbours)
//
// It is a loose bound: a component holds at least 1+neighbours centres, so there are at
// most n/(1+neighbours).
func ComponentsBound(n, neighbours int) float64 {
	s := 1 + float64(neighbours)
	return float64(n) * (1 + math.Log(s)) / s
}

// EdgesBelow is the right-hand side of theorem 2 of Mei et al., eq. 5: if all connected
// components of a graph of n centres have fewer than a centres, its adjacency matrix holds
// at most this many ones, two for each edge,
//
//	(a-1)^(1/a) * n^(2-1/a) + (a-1)*n
//
// The theorem says "if and only if". The proof counts ones of a matrix without an a x a
// block of ones, so only this direction follows.
func EdgesBelow(n, a int) float64 {
	x, y := float64(n), float64(a)
	return math.Pow(y-1, 1/y)*math.Pow(x, 2-1/y) + (y-1)*x
}

// EdgesAbove is the left-hand side of theorem 2 of Mei et al., eq. 5: if all connected
// components of a graph of n centres have more than b centres and each of them is
// complete, its adjacency matrix holds more than this many ones,
//
//	b^2 * floor(n/b) - n
//
// The paper leaves the proof out. It does not hold for sparse components: a tree of n
// centres has 2(n-1) ones only.
func EdgesAbove(n, b int) float64 { return float64(b)*float64(b)*float64(n/b) - float64(n) }

// EdgesTuran is the concise bound of Mei et al., eq. 6: if all connected components of a
// graph of n centres have fewer than a > 1 centres, it has at most this many edges,
//
//	(1 - 1/(a-1)) * n^2/2
//
// which is Turan's theorem, since such a graph has no complete part of a centres.
func EdgesTuran(n, a int) float64 {
	return (1 - 1/(float64(a)-1)) * float64(n) * float64(n) / 2
}
