// Package objectives holds the losses, one per file, as functions on graph nodes.
//
// Shape letters: B batch, C channels of the shared space, Q queue entries, V
// vocabulary, M rows of the language-modelling loss.
package objectives
