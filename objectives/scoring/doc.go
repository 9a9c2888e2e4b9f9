// Package scoring compares stored features of images and texts: the pair scores of
// package objectives without a graph, for evaluation, search and export.
//
// A feature is a row of C = n*m channels: m unit vectors of n channels, the spheres of a
// head, or a vector of any length in a Euclidean space. A score is a weighted sum of terms:
//
//	cosine    x . y, which on m spheres is the sum of their cosines (clip-mtob, table 1)
//	inner     x . y
//	l2        -|x - y|
//	angle     -sqrt(sum_k arccos^2(x_k . y_k)), minus the distance of the oblique manifold
//	gssf      x^T (W o U) y, the learned metric of GSSF; x is the image. With its form mlp x . y + f(x, y), see Network
//	geodesic  through a graph over a queue, which stored pairs have not: see Score.Host
//
// Terms that are products need one matrix product for all of them: images are folded with
// the weights and metrics first.
package scoring
