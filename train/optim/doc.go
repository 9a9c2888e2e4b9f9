// Package optim is the optimiser: AdamW with decoupled weight decay over one
// flat slab of parameters, with clipping of the global gradient norm.
//
// Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019),
// algorithm 2, with the decay scaled by the learning rate as in PyTorch.
//
// One update:
//
//	norm := opt.GradNorm(1 / microBatches) // of the averaged gradient
//	if math.IsNaN(norm) || math.IsInf(norm, 0) { ... } // before anything changes
//	opt.Step(lr, 1/microBatches, norm)
//
// Where parameters have moving averages (a momentum encoder), SetTwins names them and
// StepTwins moves them in the pass that changes the parameters.
//
// UseCUDA has a GPU make updates, of mirrors of the slabs there.
package optim
