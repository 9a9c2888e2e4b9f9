package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/state"
)

// asifShape is what a checkpoint keeps of an ASIFMap beside its tensors.
type asifShape struct {
	Widths  [2]int  `json:"widths"`
	Anchors int     `json:"anchors"`
	K       int     `json:"k"`
	P       float64 `json:"p"`
}

// StateName implements state.Part.
func (m *ASIFMap) StateName() string { return stateName }

// StateVersion implements state.Part.
func (m *ASIFMap) StateVersion() int { return 1 }

// Counters implements state.Part.
func (m *ASIFMap) Counters() any { return &m.shape }

// CheckCounters implements state.Checker.
func (m *ASIFMap) CheckCounters() error {
	s := m.shape
	switch {
	case s.Widths[0] < 1 || s.Widths[0] > maxWidth || s.Widths[1] < 1 || s.Widths[1] > maxWidth:
		return fmt.Errorf("align: rows of width %v: want 1 to %d", s.Widths, maxWidth)
	case s.Anchors < 1 || s.Anchors > math.MaxInt32 || s.K < 1 || s.K > s.Anchors || !(s.P > 0) || math.IsInf(s.P, 0):
		return fmt.Errorf("align: K = %d of %d anchors and P = %v: want 1 <= K <= anchors and P > 0", s.K, s.Anchors,
			s.P)
	}
	return checkSize(s.Anchors, s.Widths)
}

// Tensors implements state.Part: {image,text}.anchors.
func (m *ASIFMap) Tensors() []state.Tensor {
	if m.CheckCounters() != nil {
		return nil // before a fit, or of a damaged checkpoint
	}
	var out []state.Tensor
	for s := range m.anchors {
		d := m.shape.Widths[s]
		if len(m.anchors[s]) != m.shape.Anchors*d {
			m.anchors[s] = make([]float32, m.shape.Anchors*d)
		}
		out = append(out, state.Tensor{Name: Side(s).String() + ".anchors", Shape: []int{m.shape.Anchors, d},
			Data: m.anchors[s]})
	}
	return out
}
