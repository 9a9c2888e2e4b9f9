package scenes

import (
	"testing"

	"github.com/geoalign/geoalign/internal/rng"
)

// drawn returns n scenes of all sizes.
func drawn(n int) []Scene {
	out := make([]Scene, n)
	for i := range out {
		out[i] = Generate(rng.New(11, "test", uint64(i)), Config{})
	}
	return out
}

func TestObjectsStayApartAndInside(t *testing.T) {
	for i, s := range drawn(3000) {
		for a, o := range s.Objects {
			b := o.Box()
			if b.X0 < 0 || b.Y0 < 0 || b.X1 > 1 || b.Y1 > 1 || b.X0 >= b.X1 || b.Y0 >= b.Y1 {
				t.Fatalf("scene %d: %s has box %+v", i, o.Name(), b)
			}
			if col, row := int(o.X*3), int(o.Y*3); col != o.Place.Column() || row != o.Place.Row() {
				t.Fatalf("scene %d: %s at (%.3f, %.3f) is not at %s", i, o.Name(), o.X, o.Y, o.Place)
			}
			for _, p := range s.Objects[:a] {
				c := p.Box()
				if b.X0 < c.X1 && c.X0 < b.X1 && b.Y0 < c.Y1 && c.Y0 < b.Y1 {
					t.Fatalf("scene %d: %s and %s overlap", i, o.Name(), p.Name())
				}
				if o.Name() == p.Name() {
					t.Fatalf("scene %d: two %ss", i, o.Name())
				}
				if p.Place >= o.Place {
					t.Fatalf("scene %d: not in reading order", i)
				}
			}
		}
	}
}

func TestKeySeesFactsOnly(t *testing.T) {
	s := Scene{Objects: []Object{
		{Shape: Star, Colour: Red, Size: Big, Place: 2, X: 0.8},
		{Shape: Ring, Colour: Cyan, Size: Small, Place: 7},
	}}
	base := s.Key()
	change := func(edit func(s *Scene)) uint64 {
		c := Scene{Objects: append([]Object(nil), s.Objects...), Background: s.Background}
		edit(&c)
		return c.Key()
	}
	if change(func(s *Scene) { s.Background = 3; s.Objects[0].X = 0.9; s.Objects[1].RGB[0] = 9 }) != base {
		t.Error("the key depends on noise")
	}
	for name, edit := range map[string]func(s *Scene){
		"shape":  func(s *Scene) { s.Objects[0].Shape = Circle },
		"colour": func(s *Scene) { s.Objects[1].Colour = Red },
		"size":   func(s *Scene) { s.Objects[1].Size = Big },
		"place":  func(s *Scene) { s.Objects[1].Place = 8 },
		"count":  func(s *Scene) { s.Objects = s.Objects[:1] },
		"none":   func(s *Scene) { s.Objects = nil },
	} {
		if change(edit) == base {
			t.Errorf("the key ignores the %s", name)
		}
	}
}
