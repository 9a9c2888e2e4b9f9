// Package encoders builds the towers of a model as Gorgonia expressions: the vision
// transformer, the BERT text and fusion layers, the language-modelling head and
// the projections into the shared space.
//
// An encoder is a plain struct of sizes. Its methods take the nodes of
// their input and a Scope that hands out parameters by name, so the same code
// builds the online tower, the momentum encoder and the computation of inference.
//
// A tower may have several class tokens, which a projection maps onto as many spheres.
// What reads the tokens of an item, such as the fusion layers, sees the first class token
// and the patches or words, however many class tokens there are.
//
// A transformer may be tuned: its scope locks its parameters, trains some of them, and puts few new ones
// beside them. See Tuning.
//
// Shape letters: B batch, R rows (texts or pairs), L tokens of a text, P patches,
// T = P+1 image tokens, m class tokens, D width, C channels of the shared space, V
// vocabulary.
package encoders
