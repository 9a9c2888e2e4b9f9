// Package state says how the parts of a run save themselves. A part gives the memory
// that holds it and its counters; whoever writes files knows nothing else of it. A
// checkpoint is a list of parts: what is added to a run is saved because it is in the
// list, and no other file names it.
package state

// Part is something that a checkpoint holds, such as parameters, the moments of an
// optimiser, a queue, a graph over it, or the position in the data.
type Part interface {
	// StateName names the part within a checkpoint: lower case, unique, final. A part with
	// tensors has them in the file <name>.safetensors.
	StateName() string
	// StateVersion is the version of the part's layout, from 1 on. A checkpoint of a
	// newer version is refused.
	StateVersion() int
	// Counters returns a pointer to a struct with everything that is no tensor, which is
	// written as JSON and read back into the same struct; nil where there is nothing.
	// It is called anew for every save and every restore.
	Counters() any
	// Tensors returns the part's own memory: it is written as it is, and a restore reads
	// into it. A restore reads the counters first, so that they may say which tensors
	// there are.
	Tensors() []Tensor
}

// Tensor is a piece of a part's memory with its name and shape.
type Tensor struct {
	Name     string
	Shape    []int
	Data     any  // []float32 or []int32
	Infinite bool // may hold infinities; elsewhere a number that is not finite stops a save
}

// Preparer is a part that has work to finish before it can be saved.
type Preparer interface{ PrepareSave() error }

// Checker is a part that looks at the counters that were read, before any tensor is
// read: what does not fit is an error, and the part is then left as it is.
type Checker interface{ CheckCounters() error }

// Restorer is a part that has work to do once counters and tensors were read.
type Restorer interface{ Restored() error }

// Optional is a part that a checkpoint may lack, such as one that was added to a run
// later. Absent is then called in the place of a restore.
type Optional interface{ Absent() error }
