// Package encoders builds the towers of a model as Gorgonia graphs: the vision
// transformer, the BERT text and fusion layers, the language-modelling head and
// the projections into the shared space.
//
// An encoder is a plain struct of sizes. Its methods take the graph nodes of
// their input and a Scope that hands out parameters by name, so the same code
// builds the online tower, its momentum twin and the evaluation graph.
//
// Shape letters: B batch, R rows (texts or pairs), L tokens of a text, P patches,
// T = P+1 image tokens, D width, C channels of the shared space, V vocabulary.
package encoders
