package objectives

import (
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
)

// sharing is a loss that makes a measure for all losses before its own part.
type sharing string

func (l sharing) Build(s *Step) []Part {
	if len(s.parts) == 0 {
		s.parts = append(s.parts, Part{Name: "shared", Measure: true})
	}
	return []Part{s.Part(string(l), 1, nil), {Name: string(l) + "_accuracy", Measure: true}}
}

// TestPartsAreThoseOfTheLosses: in the order in which losses are added, what the first of
// them makes for all before its own, and as often as they are asked for.
func TestPartsAreThoseOfTheLosses(t *testing.T) {
	s := &Step{}
	s.Add(sharing("a"))
	s.Add(sharing("b"))
	for range 2 {
		var names []string
		for _, p := range s.Parts() {
			names = append(names, p.Name)
		}
		if want := []string{"shared", "a", "a_accuracy", "b", "b_accuracy"}; !slices.Equal(names, want) {
			t.Errorf("got %v, want %v", names, want)
		}
	}
}

// TestTheFirstContrastGivesTheSimilarities: one that is built later changes nothing.
func TestTheFirstContrastGivesTheSimilarities(t *testing.T) {
	n := newBench(t)
	first, second := n.floats("first", make([]float32, 4), 2, 2), n.floats("second", make([]float32, 4), 2, 2)
	s := &Step{}
	for _, x := range []*gorgonia.Node{first, second} {
		s.offer(Contrast{I2T: x, T2I: x})
	}
	if c := s.Similarities(); c.I2T != first || c.T2I != first {
		t.Errorf("got %v and %v", c.I2T, c.T2I)
	}
}
