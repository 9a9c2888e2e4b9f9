// Package space says what the space is that features of images and texts lie in.
//
// A feature has C channels. How they are normalised makes the space:
//
//	sphere      one unit vector of C channels
//	Ob(n,m)     the oblique manifold: m groups of n channels, C = n m, each a unit vector;
//	            both towers make the whole row of one class token
//	Multi(n,m)  the same rows, but each tower has m class tokens and group k comes from token k
//	euclid      rows of any length
//
// Distances are angles on a sphere, sqrt(sum_k arccos^2(x_k . y_k)) over the groups of
// several, and |x - y| in a Euclidean space. The names are those of the configuration.
package space

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
)

// Space is a space of features. The zero value is one sphere, of a number of channels that
// is not said.
type Space struct {
	Dim     int  // C; 0 where nobody asks
	Spheres int  // m, a divisor of C; 0 stands for 1, as it is in a Euclidean space
	Tokens  bool // each sphere has a class token of its own
	Euclid  bool // rows are not normalised
}

// product is the form of the spaces of several spheres.
var product = regexp.MustCompile(`^(Ob|Multi)\((\d+), ?(\d+)\)$`)

// Parse returns the space of a name and a number of channels. Its error says how a name is
// written, or that its size is not dim.
func Parse(name string, dim int) (Space, error) {
	one := Space{Dim: dim, Spheres: 1}
	switch name {
	case "sphere":
		return one, nil
	case "euclid":
		one.Euclid = true
		return one, nil
	}
	f := product.FindStringSubmatch(name)
	if f == nil {
		return one, fmt.Errorf("must be sphere, euclid, Ob(n,m) or Multi(n,m)")
	}
	n, err1 := strconv.Atoi(f[2])
	m, err2 := strconv.Atoi(f[3])
	if err1 != nil || err2 != nil || n < 1 || m < 1 || n > dim || m > dim {
		return one, fmt.Errorf("must have between 1 and %d channels and spheres", dim)
	}
	if n*m != dim {
		return one, fmt.Errorf("has %d x %d = %d channels, not %d", n, m, n*m, dim)
	}
	return Space{Dim: dim, Spheres: m, Tokens: f[1] == "Multi"}, nil
}

// String returns the name that Parse reads.
func (s Space) String() string {
	switch {
	case s.Euclid:
		return "euclid"
	case s.Tokens:
		return fmt.Sprintf("Multi(%d,%d)", s.SphereDim(), s.Groups())
	case s.Groups() > 1:
		return fmt.Sprintf("Ob(%d,%d)", s.SphereDim(), s.Groups())
	}
	return "sphere"
}

// Check returns an error unless rows of dim channels can lie in s.
func (s Space) Check(dim int) error {
	switch {
	case s.Spheres < 0:
		return fmt.Errorf("spheres must not be below 0 (got %d)", s.Spheres)
	case s.Euclid && s.Spheres > 1:
		return fmt.Errorf("features of a Euclidean space have no spheres (got %d)", s.Spheres)
	case dim%s.Groups() != 0:
		return fmt.Errorf("%d channels do not divide into %d spheres", dim, s.Spheres)
	}
	return nil
}

// Leading returns the space of the first dim channels of features of s: the sphere of the directions of a part, and of
// several spheres the first ones, each as a whole.
func (s Space) Leading(dim int) (Space, error) {
	switch n := s.SphereDim(); {
	case dim < 1 || dim > s.Dim:
		return s, fmt.Errorf("must be between 1 and %d channels", s.Dim)
	case s.Groups() == 1:
		s.Dim = dim
	case dim%n != 0:
		return s, fmt.Errorf("must be whole spheres of %s, a multiple of %d channels", s, n)
	default:
		s.Dim, s.Spheres, s.Tokens = dim, dim/n, false
	}
	return s, nil
}

// Truncate appends the leading channels of rows (n, C) to dst, as points of s, which Leading returned: on one sphere they
// are scaled to length 1.
func (s Space) Truncate(dst, rows []float32, c int) []float32 {
	for row := range slices.Chunk(rows, c) {
		row = row[:s.Dim]
		scale := float32(1)
		if s.One() {
			sum := 0.0
			for _, v := range row {
				sum += float64(v) * float64(v)
			}
			scale = float32(1 / max(math.Sqrt(sum), 1e-12))
		}
		for _, v := range row {
			dst = append(dst, scale*v)
		}
	}
	return dst
}

// Groups returns m, the number of equal groups of channels: at least 1.
func (s Space) Groups() int { return max(s.Spheres, 1) }

// SphereDim returns n, the channels of a group.
func (s Space) SphereDim() int { return s.Dim / s.Groups() }

// Classes returns the class tokens that each tower has.
func (s Space) Classes() int {
	if s.Tokens {
		return s.Groups()
	}
	return 1
}

// One says whether s is one sphere, where the distance is the angle.
func (s Space) One() bool { return !s.Euclid && s.Spheres <= 1 }
