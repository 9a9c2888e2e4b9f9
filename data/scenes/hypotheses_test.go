package scenes

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestHypotheses: a sentence is true, false or about what is hidden exactly as its label says, and nothing but the picture tells the label.
func TestHypotheses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 6000
	var labels [3]int
	places := map[string]*[3]int{}
	for range n {
		s, h := Generate(r, Config{MinObjects: 2, MaxObjects: 3}).Hypothesis(r)
		labels[h.Label]++
		said, hidden := false, false
		for p := Place(0); p < numPlaces; p++ {
			if strings.HasSuffix(h.Text, " "+p.Phrase()) {
				hidden = s.Curtain.Hides(p)
				if places[p.Phrase()] == nil {
					places[p.Phrase()] = &[3]int{}
				}
				places[p.Phrase()][h.Label]++
			}
		}
		for _, o := range s.Objects {
			said = said || h.Text == say(o, o.Place)
		}
		want := 0
		switch {
		case hidden:
			want = 1
		case said:
			want = 2
		}
		if h.Label != want {
			t.Fatalf("%q of %+v behind curtain %d has label %d, want %d", h.Text, s.Objects, s.Curtain, h.Label, want)
		}
	}
	for k, c := range labels {
		if c < n*30/100 || c > n*37/100 {
			t.Errorf("label %d has %d of %d sentences", k, c, n)
		}
	}
	if len(places) != numPlaces {
		t.Errorf("%d places are spoken of", len(places))
	}
	for p, c := range places { // a guess by the place is hardly better than by the commonest label
		if best := max(c[0], c[1], c[2]); best*100 > 42*(c[0]+c[1]+c[2]) {
			t.Errorf("%s has labels %v", p, *c)
		}
	}
}

// TestCurtain: what a curtain hides is not in the picture, and the rest is as without it.
func TestCurtain(t *testing.T) {
	s := Generate(rand.New(rand.NewPCG(3, 4)), Config{MinObjects: 4})
	const size = 48
	plain, drawn := make([]uint8, 3*size*size), make([]uint8, 3*size*size)
	s.RenderRGB(plain, size)
	s.Curtain = MiddleCurtain
	s.RenderRGB(drawn, size)
	for y := range size {
		for x := range size {
			p, q := plain[3*(y*size+x):][:3], drawn[3*(y*size+x):][:3]
			switch middle := x >= size/3 && x < 2*size/3; {
			case middle && (q[0] != q[1] || q[0] != stripes[0] && q[0] != stripes[1]):
				t.Fatalf("pixel %d, %d behind the curtain is %v", x, y, q)
			case !middle && string(p) != string(q):
				t.Fatalf("pixel %d, %d is %v, without the curtain %v", x, y, q, p)
			}
		}
	}
}
