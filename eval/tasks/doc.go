// Package tasks evaluates models on data: it encodes a split, scores it and hands
// the scores to the metrics of package eval.
//
// Shape letters: N images, M texts, C channels of the features, T tokens of an image of
// width D, L tokens of a text of width E, n rows of a batch or a part of the data, k pairs.
package tasks
