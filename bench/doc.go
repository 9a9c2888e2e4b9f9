// Package bench measures training steps: Measure one configuration, Against two in turns,
// Tables what steps cost as one quantity grows, and Compare sets a result beside an
// earlier one. Steps run on random data with a full queue and distillation at its full
// weight, as in the middle of a run.
//
// The folder peer holds the same models in PyTorch.
package bench
