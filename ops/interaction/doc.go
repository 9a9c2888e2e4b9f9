// Package interaction has what images and texts are compared by with all their tokens: late
// interaction, in which each token looks for the nearest one of the other side, cross
// attention, in which it looks at all of them, once, in steps with a memory (recurrent attention)
// or with a boundary below which a token has no counterpart (negative-aware attention),
// vectors of similarity, which words have with what they see so, and summaries of either side for
// each token of the other, which it is compared with.
//
// N images of T tokens, M texts of L tokens, C channels, vectors of similarity of S.
package interaction
