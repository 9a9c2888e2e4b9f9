package objectives

import "gorgonia.org/gorgonia"

// Memory is the host side of past features, such as the queue of a model.
type Memory interface {
	// Banks adds the memory's inputs to the step, once the towers are built.
	Banks(s *Step) *Banks
}

// Banks are the features that a step compares its own with: the momentum features of the
// batch and the queue of past ones.
type Banks struct {
	Image, Text *Bank // Text is nil in systems of images alone
	// Positives are the columns that are right answers for the rows of the batch.
	Positives Positives
	// Own (B) int32 are the columns of the batch, nil for 0, 1, ... B-1.
	Own *gorgonia.Node
	// Filled is the number of entries that the queue had before the batch, and Usable how
	// many of them a step may read: none before the queue comes into use. int32 scalars.
	Filled, Usable *gorgonia.Node
	// GraphActive says whether the step that was filled last reads graphs over the queue.
	GraphActive func() bool
	// ImageBackbone and TextBackbone are the rings (Q, D') of features before the head, nil
	// unless they are kept.
	ImageBackbone, TextBackbone *gorgonia.Node
	Size                        int // Q, 0 without a queue
}
