package geodesic

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The values of the formulas by hand.
func TestTheorems(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"eq. 4, 256 centres of 8 neighbours", ComponentsBound(256, 8), 256 * (1 + math.Log(9)) / 9},
		{"eq. 4 without neighbours", ComponentsBound(10, 0), 10},
		{"eq. 5 right, n=4 a=2", EdgesBelow(4, 2), 8 + 4}, // 1^(1/2) * 4^(3/2) + 4
		{"eq. 5 left, n=10 b=3", EdgesAbove(10, 3), 9*3 - 10},
		{"eq. 6, n=10 a=3", EdgesTuran(10, 3), 25},
		{"eq. 6, a=2: no edges", EdgesTuran(10, 2), 0},
	} {
		if !(math.Abs(c.got-c.want) <= 1e-9) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if b := ComponentsBound(256, 8); int(b) != 90 || math.Ceil(b) != 91 {
		t.Errorf("the bound of 256 centres is %v, by hand it is 90.9", b)
	}
}

// The bounds hold for the graphs of random pools, many of them disconnected.
func TestTheoremsHold(t *testing.T) {
	e, apart := engine(t, 1), 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		n, c := 300, 3+r.IntN(12)
		x := mixture(n, c, 3+r.IntN(30), .05+.3*r.Float64(), r)
		o := Options{Layers: []int{20 + r.IntN(60)}, Neighbours: 1 + r.IntN(5), Split: seed%2 == 0}
		if seed%3 == 0 {
			o.Layers = []int{4, o.Layers[0]}
		}
		_, s := build(t, e, x, n, c, o, seed)
		for _, l := range s.Layers {
			if l.Components > l.Graphs {
				apart++
			}
			if float64(l.Components) > l.ComponentsBound || float64(2*l.Edges) > l.OnesBelow || float64(l.Edges) > l.EdgesBelow+1e-9 {
				t.Fatalf("seed %d: a bound is broken: %+v", seed, l)
			}
			if l.Smallest > l.Largest || l.DegreeMin > l.DegreeMax || l.Components < l.Graphs {
				t.Fatalf("seed %d: %+v", seed, l)
			}
		}
	}
	if apart < 5 {
		t.Fatalf("only %d graphs fall apart", apart)
	}
}

// The left-hand side of eq. 5 holds for complete components, and fails for a path.
func TestEdgesAbove(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		b, n, ones := 1+r.IntN(9), 0, 0
		for range 1 + r.IntN(6) {
			size := b + 1 + r.IntN(5)
			n, ones = n+size, ones+size*(size-1)
		}
		if float64(ones) <= EdgesAbove(n, b) {
			t.Fatalf("n=%d b=%d: %d ones, the bound is %v", n, b, ones, EdgesAbove(n, b))
		}
	}
	if float64(2*9) > EdgesAbove(10, 9) {
		t.Fatal("a path of ten centres meets the bound of complete ones: the comment of EdgesAbove is wrong")
	}
}
