// Package similarity has what pairs of features are scored by: dot products with a batch and
// a queue, distances on spheres and in a Euclidean space, and learned metrics.
package similarity
