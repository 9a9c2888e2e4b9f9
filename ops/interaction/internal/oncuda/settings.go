package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// The sides of a pair.
const (
	imageSide = iota
	textSide
)

// Side is one side of pairs: operands, -1 for those that there are not, and where the places of its tokens' maxima are
// among the auxiliary results.
type Side struct {
	Lengths, Weights int
	First, Len       int
	Places           int
}

// Parts of the nodes of a pair: those of words, and the first one.
const (
	wordPart = iota
	wholePart
)

// Operands of Vectors.
const (
	vectorsImages = 2
	vectorsTexts  = 3
)

// Layer are the operands of a linear layer, 0 for one that there is not.
type Layer struct{ Weight, Bias int }

// Reasoning are the layers of a step.
type Reasoning struct{ Query, Key, Out Layer }

// Vectors are similarity vectors.
type Vectors struct {
	Sides                 [2]Side
	Scale                 float32
	Attention, Similarity int // operands
	Layers                int // the first operand that is of a layer
	Local, Global, Score  Layer
	Gate                  Layer
	Steps                 []Reasoning
	Floats                int // operands that have gradients
	Operands              int
}

// MaxSim are scores by the maxima of products of tokens.
type MaxSim struct {
	Sides    [2]Side
	Operands int
}

// step is that of an op of scores, or of its gradients.
func step(prepare func(c *exec.DeviceCall, backward bool) cuda.Step, backward bool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return prepare(c, backward) })
}

// Step is that of the scores, or of their gradients.
func (x *Vectors) Step(backward bool) cuda.Steps { return step(x.prepare, backward) }
