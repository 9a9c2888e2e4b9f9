package space_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/space"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name          string
		want          space.Space
		n, m, classes int
	}{
		{"sphere", space.Space{Dim: 12, Spheres: 1}, 12, 1, 1},
		{"euclid", space.Space{Dim: 12, Spheres: 1, Euclid: true}, 12, 1, 1},
		{"Ob(4,3)", space.Space{Dim: 12, Spheres: 3}, 4, 3, 1},
		{"Multi(3,4)", space.Space{Dim: 12, Spheres: 4, Tokens: true}, 3, 4, 4},
	} {
		s, err := space.Parse(c.name, 12)
		if err != nil || s != c.want {
			t.Errorf("%s: got %+v and error %v", c.name, s, err)
		}
		if s.SphereDim() != c.n || s.Groups() != c.m || s.Classes() != c.classes {
			t.Errorf("%s: %d groups of %d channels from %d class tokens", c.name, s.Groups(), s.SphereDim(), s.Classes())
		}
		if s.String() != c.name {
			t.Errorf("%s is written %s", c.name, s)
		}
		if err := s.Check(12); err != nil {
			t.Error(err)
		}
		if s.One() != (c.name == "sphere") {
			t.Errorf("%s: One is %t", c.name, s.One())
		}
	}
	if s, err := space.Parse("Ob(4, 3)", 12); err != nil || s.String() != "Ob(4,3)" {
		t.Errorf("a blank after the comma: got %v and error %v", s, err)
	}
	if (space.Space{}) != (space.Space{Spheres: 0}) || !(space.Space{}).One() || (space.Space{}).String() != "sphere" {
		t.Error("the zero value is not one sphere")
	}
}

func TestLeading(t *testing.T) {
	for _, c := range []struct {
		name, want string
		dim        int
	}{
		{"sphere", "sphere", 5}, {"euclid", "euclid", 5}, {"Ob(4,3)", "Ob(4,2)", 8}, {"Ob(4,3)", "sphere", 4},
		{"Multi(3,4)", "Ob(3,2)", 6}, {"Ob(4,3)", "Ob(4,3)", 12},
	} {
		s, _ := space.Parse(c.name, 12)
		if got, err := s.Leading(c.dim); err != nil || got.String() != c.want || got.Dim != c.dim {
			t.Errorf("%d of %s: got %+v and error %v, want %s", c.dim, c.name, got, err, c.want)
		}
	}
	for _, c := range []struct {
		name, want string
		dim        int
	}{
		{"sphere", "between 1 and 12 channels", 13}, {"sphere", "between 1 and 12 channels", 0},
		{"Ob(4,3)", "must be whole spheres of Ob(4,3), a multiple of 4 channels", 6},
	} {
		s, _ := space.Parse(c.name, 12)
		if _, err := s.Leading(c.dim); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d of %s: got error %v, want one with %q", c.dim, c.name, err, c.want)
		}
	}
}

// TestTruncate: leading channels are unit vectors on one sphere, and stay as they are elsewhere.
func TestTruncate(t *testing.T) {
	rows := []float32{3, 4, 12, 0, 0, 0, -2, 1} // two of four channels
	for _, c := range []struct {
		name string
		dim  int
		want []float32
	}{
		{"sphere", 2, []float32{9, 0.6, 0.8, 0, 0}}, {"euclid", 3, []float32{9, 3, 4, 12, 0, 0, -2}},
		{"Ob(1,4)", 2, []float32{9, 3, 4, 0, 0}}, {"Ob(2,2)", 2, []float32{9, 0.6, 0.8, 0, 0}},
	} {
		s, _ := space.Parse(c.name, 4)
		s, err := s.Leading(c.dim)
		if got := s.Truncate([]float32{9}, rows, 4); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d of %s: got %v and error %v, want %v", c.dim, c.name, got, err, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for name, want := range map[string]string{
		"ball": "must be sphere, euclid", "Ob(4)": "must be sphere", "Ob(3,5)": "has 3 x 5 = 15 channels, not 12",
		"Ob(0,3)": "between 1 and 12", "Multi(13,1)": "between 1 and 12", "Ob(99999999999999999999,1)": "between 1 and 12",
	} {
		if _, err := space.Parse(name, 12); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", name, err, want)
		}
	}
	for want, s := range map[string]space.Space{
		"must not be below 0 (got -1)": {Spheres: -1}, "have no spheres (got 2)": {Spheres: 2, Euclid: true}, "12 channels do not divide into 5": {Spheres: 5},
	} {
		if err := s.Check(12); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want one with %q", s, err, want)
		}
	}
}
