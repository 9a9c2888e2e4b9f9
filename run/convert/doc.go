// Package convert makes runs of stored weights, exports models in the forms of other programs, and makes runs of
// other runs: the mean of checkpoints, and weights that have taken in their adapters.
package convert
