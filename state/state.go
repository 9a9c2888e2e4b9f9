// Package state says how the parts of a run save themselves. A part gives the memory
// that holds it and its counters; whoever writes files knows nothing else of it. A
// checkpoint is a list of parts: what is added to a run is saved because it is in the
// list, and no other file names it.
//
// A save asks each part, in this order, for PrepareSave, Counters and Tensors. A restore
// sets what Counters points at, asks CheckCounters, compares Tensors with what was saved,
// and only when all parts fit does it read into them and call Restored or Absent. Where a
// part does not fit, counters are put back, and all parts are as they were.
package state

// Part is something that a checkpoint holds, such as parameters, the moments of an
// optimiser, a queue, a graph over it, or the position in the data.
type Part interface {
	// StateName names the part within a checkpoint: lower case letters, digits and _,
	// unique, final. A part with tensors has them in the file <name>.safetensors.
	StateName() string
	// StateVersion is the version of the part's layout, from 1 on. A checkpoint of
	// another version is refused.
	StateVersion() int
	// Counters returns a pointer to a struct with everything that is not a tensor, which is
	// written as JSON and read back into the same struct; nil where there is nothing.
	// It is called anew for every save and every restore. What a restore sets is the whole
	// struct, and its slices and maps are new ones.
	Counters() any
	// Tensors returns the part's own memory: it is written as it is, and a restore reads
	// into it. A restore sets the counters first, so that they may say which tensors
	// there are. A part that shall keep what it has returns none.
	Tensors() []Tensor
}

// Tensor is a piece of a part's memory with its name and shape.
type Tensor struct {
	Name     string
	Shape    []int
	Data     any  // []float32, []int32 or []int64
	Infinite bool // may hold infinities; elsewhere a number that is not finite stops a save
}

// Preparer is a part that has work to finish before it can be saved.
type Preparer interface{ PrepareSave() error }

// Checker is a part that looks at the counters that were set, before any tensor is
// read: what does not fit is an error, and the part is then left as it was.
type Checker interface{ CheckCounters() error }

// Restorer is a part that has work to do once counters and tensors were read.
type Restorer interface{ Restored() error }

// Optional is a part that a checkpoint may lack, such as one that was added to a run
// later. Absent is then called instead of Restored.
type Optional interface{ Absent() error }

// Exact is a part that takes all of the tensors that were saved under its name or none:
// one that it lacks is a difference like a missing one, such as a parameter of another
// architecture. Other parts leave further tensors of a checkpoint alone.
type Exact interface{ ExactTensors() }

// Values is a part of memory that is at hand, for a program that needs no type of its own.
type Values struct {
	Name    string
	Version int // 0: 1
	Numbers any // pointer to a struct, or nil
	Memory  []Tensor
}

var _ Part = Values{}

// StateName implements Part.
func (v Values) StateName() string { return v.Name }

// StateVersion implements Part.
func (v Values) StateVersion() int { return max(1, v.Version) }

// Counters implements Part.
func (v Values) Counters() any { return v.Numbers }

// Tensors implements Part.
func (v Values) Tensors() []Tensor { return v.Memory }
