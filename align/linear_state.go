package align

import (
	"fmt"

	"github.com/geoalign/geoalign/state"
)

// linearShape is what a checkpoint keeps of a Linear beside its tensors.
type linearShape struct {
	Widths  [2]int    `json:"widths"`  // D and E
	Parts   []int     `json:"parts"`   // widths of the parts, which sum to C
	Weights []float64 `json:"weights"` // of the parts
}

// StateName implements state.Part.
func (l *Linear) StateName() string { return stateName }

// stateName is that of all maps: a run has one.
const stateName = "alignment"

// StateVersion implements state.Part.
func (l *Linear) StateVersion() int { return 1 }

// Counters implements state.Part.
func (l *Linear) Counters() any { return &l.shape }

// CheckCounters implements state.Checker.
func (l *Linear) CheckCounters() error {
	c := 0
	for _, w := range l.shape.Parts {
		if w < 1 || w > maxWidth {
			return fmt.Errorf("align: a part of %d channels: want 1 to %d", w, maxWidth)
		}
		c += w
	}
	w := l.shape.Widths
	switch {
	case w[0] < 1 || w[0] > maxWidth || w[1] < 1 || w[1] > maxWidth:
		return fmt.Errorf("align: rows of width %v: want 1 to %d", w, maxWidth)
	case c < 1 || c > maxWidth || len(l.shape.Weights) != len(l.shape.Parts):
		return fmt.Errorf("align: %d parts of %d channels together with %d weights: want 1 to %d channels and a weight for each part", len(l.shape.Parts), c, len(l.shape.Weights), maxWidth)
	}
	return checkSize(c, w)
}

// checkSize bounds what is made for a checkpoint: n rows of the widths of both sides.
func checkSize(n int, widths [2]int) error {
	if n*(widths[0]+widths[1]) > maxNumbers {
		return fmt.Errorf("align: %d rows of %d and %d numbers: want at most %d numbers", n, widths[0], widths[1],
			maxNumbers)
	}
	return nil
}

// Bounds of what is made for a checkpoint.
const (
	maxWidth   = 1 << 20
	maxNumbers = 1 << 33
)

// Tensors implements state.Part: {image,text}.{weight,bias}.
func (l *Linear) Tensors() []state.Tensor {
	if l.CheckCounters() != nil {
		return nil // before a fit, or of a damaged checkpoint
	}
	c := 0
	for _, w := range l.shape.Parts {
		c += w
	}
	var out []state.Tensor
	for s := range l.weight {
		d := l.shape.Widths[s]
		if len(l.weight[s]) != c*d || len(l.bias[s]) != c {
			l.weight[s], l.bias[s] = make([]float32, c*d), make([]float32, c)
		}
		out = append(out, state.Tensor{Name: Side(s).String() + ".weight", Shape: []int{c, d}, Data: l.weight[s]},
			state.Tensor{Name: Side(s).String() + ".bias", Shape: []int{c}, Data: l.bias[s]})
	}
	return out
}
