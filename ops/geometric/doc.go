// Package geometric is the geometric regulariser of GeRA (Klebe et al., "GeRA:
// Label-Efficient Geometrically Regularized Alignment", sections 4.1 and
// 4.2): what a head does to the neighbourhood of a point is measured by comparing
// kernel matrices of the neighbourhood before and after it,
//
//	Geo = mean over anchors x of || W(N_K(x)) - W(phi(N_K(x))) ||_F^2
//
// Neighbours finds the neighbourhoods in a queue and Geometric is the loss. Their tests have
// the definition in float64 on plain slices and hold both against it.
//
// # Choices
//
// The paper leaves these open:
//
//   - The anchor is one of the K points.
//   - Features are scaled before distances are taken, see Options.Scale.
//   - A row of the kernel matrix that sums to 0 stays 0. That happens with Linear and
//     Squared where all points coincide, which they then do after the head too, and the
//     comparison is 0.
//   - Points closer than 1e-6 of their lengths coincide: that is the rounding of float32,
//     and the gradient of Linear there would be a direction made of it. It is 0 for
//     points that coincide.
//   - Biased sampling draws without replacement with weights 1/(1+rank).
package geometric
