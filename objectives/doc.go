// Package objectives holds the losses, one per file. A loss (loss_*.go) says what it reads of
// a Step and adds its formula to it; the formula is a function of nodes in a file of its own.
// A graph is always the geodesic graph over a queue (package objectives/geodesic); what
// Gorgonia calls an expression graph is the step, or a computation.
//
// Shape letters: B batch, C channels of the shared space, Q queue entries, R pairs, L tokens
// of a text, T tokens of an image, D width of a token, D' of the class tokens of a sample, K
// centres of a graph or prototypes, V vocabulary, M rows of the language-modelling loss.
package objectives
