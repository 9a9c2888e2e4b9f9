// Package explain says what a score of an image and a text rests on: Grad-CAM of tokens and of
// cross-attention from what a model computed, scores by tokens as sums of terms, a file a kind, and
// pictures of it, heat over an image or over its regions, tables and words in strips. It knows no model
// and opens no file.
//
//	c := explain.Elementwise(values, grads, n, d)         // by patch
//	m := explain.Map{Values: explain.Positive(c), Rows: 8, Columns: 8}
//	picture := explain.Overlay(img, m, 0, 0, 640, 480)     // heat over an image of that size
//
// Letters: N tokens of D channels, L places of a text, T tokens of an image, H heads; of a comparison by
// tokens of C channels, Q queries with K tokens of context.
package explain
