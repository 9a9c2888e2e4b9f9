// Package exchange holds the ops by which the processes of a group, its ranks, exchange values within a computation.
// All ranks run the same program, so each of them runs the same exchanges in the same order. A computation has one
// group.
package exchange
