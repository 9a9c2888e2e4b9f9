// Package transport is entropic optimal transport between two sets of equal masses: the plan,
// and the divergence of two plans with its gradient. Package align fits maps with it, and the
// loss of SOTAlign (ops/relation) compares plans.
//
// Letters: n and m items of the two sets.
package transport
