// Package interact has the ways in which a model compares images and texts by their tokens, a
// file each. One is an encoders.Interaction: a struct of its settings that builds scores (N, M)
// from local features, for the training step and for evaluation alike.
//
// Parameters of an interaction lie below the name interaction/, those of a learned metric where
// encoders.Metric has them, with a site for each place that compares rows.
package interact
