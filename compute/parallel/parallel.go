// Package parallel is what a training step exchanges with other processes of the same
// run. The case of a single process does nothing and allocates nothing.
//
// A step of package train exchanges in this order, which is that of its program and so the same on all ranks:
//
//	Agree               before the step: who was asked to stop, or has failed since the last one
//	GatherInts, Gather  a rebuild of graphs over the queue, where one is due (package objectives/geodesic)
//	GatherBytes         for each micro-batch: bad samples, mostly nothing (package data)
//	Gather, SumShare    losses, within the computation (package model)
//	Begin               buckets of gradients, while the backward pass of the last micro-batch goes on
//	Gather              keys of the queue, statistics of norms and the like (package model)
//	Wait                for the gradients
//	GatherInts          losses, samples, waits, and who has a number that is not finite; GatherBytes of what it is, where there is one
package parallel

// Group is a number of processes, ranks, that train one model together. Each holds an
// equal share of the global batch. All ranks call the same methods in the same order.
type Group interface {
	Rank() int // of this process, from 0 on
	Size() int // number of processes, at least 1
	// Sum adds up x over all ranks, element by element and in the order of the ranks, in
	// place.
	Sum(x []float32) error
	// SumShare sets own to what Sum would make of the share of x, of equal shares in the order of the
	// ranks, that is this rank's: len(x) is Size times len(own).
	SumShare(own, x []float32) error
	// Gather appends the values of all ranks to dst, those of rank 0 first, and returns it.
	Gather(dst, x []float32) ([]float32, error)
	// GatherInts is Gather for int32.
	GatherInts(dst, x []int32) ([]int32, error)
	// GatherBytes returns what all ranks give, of any lengths, that of rank 0 first.
	GatherBytes(x []byte) ([][]byte, error)
	// All says whether ok is true on every rank.
	All(ok bool) (bool, error)
	// Begin starts a Sum of x, which belongs to the group until Wait returns. Whatever is
	// asked for meanwhile comes behind it, in the order in which it was asked for.
	Begin(x []float32)
	// Wait waits for all that was begun and returns the first error of it.
	Wait() error
}

// Single is the group of one process.
type Single struct{}

var _ Group = Single{}

// Rank returns 0.
func (Single) Rank() int { return 0 }

// Size returns 1.
func (Single) Size() int { return 1 }

// Sum leaves x as it is.
func (Single) Sum([]float32) error { return nil }

// SumShare copies x.
func (Single) SumShare(own, x []float32) error {
	copy(own, x)
	return nil
}

// Gather appends x.
func (Single) Gather(dst, x []float32) ([]float32, error) { return append(dst, x...), nil }

// GatherInts appends x.
func (Single) GatherInts(dst, x []int32) ([]int32, error) { return append(dst, x...), nil }

// GatherBytes returns x.
func (Single) GatherBytes(x []byte) ([][]byte, error) { return [][]byte{x}, nil }

// Begin leaves x as it is.
func (Single) Begin([]float32) {}

// Wait returns at once.
func (Single) Wait() error { return nil }

// All returns ok.
func (Single) All(ok bool) (bool, error) { return ok, nil }
