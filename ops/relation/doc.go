// Package relation compares what rows are to each other in two spaces, the fixed one that they
// come from and the one that is trained:
//
//	PlanDivergence  transport plans between images and texts (SOTAlign)
//	HopDivergence   random walks among the rows of one modality (STRUCTURE)
//
// Both read similarities, so that the spaces need not have one width, and give the gradient in
// those of the trained space. They compute it with the loss, which is what they are for.
//
// Letters: N rows, M rows of the other modality.
package relation
