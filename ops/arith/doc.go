// Package arith has sums, multiples and reductions of arrays: what joins losses and scores.
package arith
