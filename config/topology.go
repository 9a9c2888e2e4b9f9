package config

import (
	"fmt"
	"regexp"
	"strconv"
)

// Topology is the space that a head maps into: m spheres of n channels each, which are m
// unit vectors, or one Euclidean space.
type Topology struct {
	SphereDim int  // n
	Spheres   int  // m; 1 in a Euclidean space
	Tokens    bool // each sphere has a class token of its own
	Euclid    bool
}

// product is the form of the topologies of several spheres.
var product = regexp.MustCompile(`^(Ob|Multi)\((\d+), ?(\d+)\)$`)

// Space returns the topology that Topology names. Its error says how one is written, or
// that its size is not that of Dim.
func (h Head) Space() (Topology, error) {
	one := Topology{SphereDim: h.Dim, Spheres: 1}
	switch h.Topology {
	case "sphere":
		return one, nil
	case "euclid":
		one.Euclid = true
		return one, nil
	}
	m := product.FindStringSubmatch(h.Topology)
	if m == nil {
		return one, fmt.Errorf("must be sphere, euclid, Ob(n,m) or Multi(n,m)")
	}
	n, err1 := strconv.Atoi(m[2])
	k, err2 := strconv.Atoi(m[3])
	if err1 != nil || err2 != nil || n < 1 || k < 1 || n > h.Dim || k > h.Dim {
		return one, fmt.Errorf("must have between 1 and model.head.dim = %d channels and spheres", h.Dim)
	}
	if n*k != h.Dim {
		return one, fmt.Errorf("has %d x %d = %d channels, not the %d of model.head.dim", n, k, n*k, h.Dim)
	}
	return Topology{SphereDim: n, Spheres: k, Tokens: m[1] == "Multi"}, nil
}

// Classes returns the class tokens that each tower has.
func (t Topology) Classes() int {
	if t.Tokens {
		return t.Spheres
	}
	return 1
}
