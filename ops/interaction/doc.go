// Package interaction has what images and texts are compared by with all their tokens: late
// interaction, in which each token looks for the nearest one of the other side, cross
// attention, in which it looks at all of them, and vectors of similarity, which words have with what
// they see so.
//
// N images of T tokens, M texts of L tokens, C channels, vectors of similarity of S.
package interaction
