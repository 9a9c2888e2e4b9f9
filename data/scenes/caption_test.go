package scenes

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/geoalign/geoalign/internal/rng"
)

func TestPhrasings(t *testing.T) {
	obj := func(size Size, c Colour, f Shape, p Place) Object {
		return Object{Size: size, Colour: c, Shape: f, Place: p}
	}
	a := obj(Small, Red, Circle, 0)
	b := obj(Big, Blue, Star, 4)
	c := obj(Big, Green, Ring, 5)
	d := obj(Small, Cyan, Heart, 6)
	for _, tc := range []struct {
		objects []Object
		want    [numPhrasings]string
	}{
		{[]Object{a}, [...]string{
			"a small red circle at the top left",
			"at the top left a small red circle",
			"there is a small red circle at the top left",
			"only a small red circle at the top left",
		}},
		{[]Object{a, b}, [...]string{
			"a small red circle at the top left and a big blue star in the centre",
			"at the top left a small red circle and in the centre a big blue star",
			"there is a small red circle at the top left and a big blue star in the centre",
			"a small red circle above and to the left of a big blue star",
		}},
		{[]Object{b, c}, [...]string{
			"a big blue star in the centre and a big green ring on the right",
			"in the centre a big blue star and on the right a big green ring",
			"there is a big blue star in the centre and a big green ring on the right",
			"a big blue star to the left of a big green ring",
		}},
		{[]Object{a, b, c, d}, [...]string{
			"small red circle top left, big blue star centre, big green ring right and small cyan heart bottom left",
			"top left: small red circle, centre: big blue star, right: big green ring and bottom left: small cyan heart",
			"four objects: small red circle top left, big blue star centre, big green ring right and small cyan heart bottom left",
			"a small red circle, to its right a big blue star, to its right a big green ring, to its left a small cyan heart",
		}},
	} {
		s := Scene{Objects: tc.objects}
		for i, got := range s.Captions() {
			if got != tc.want[i] {
				t.Errorf("phrasing %d:\n got %q\nwant %q", i, got, tc.want[i])
			}
		}
	}
}

func TestCaptionsNameEverything(t *testing.T) {
	longest := 0
	for _, s := range drawn(2000) {
		for _, c := range s.Captions() {
			longest = max(longest, len(strings.Fields(c)))
			for _, o := range s.Objects {
				if strings.Count(c, o.FullName()) != 1 {
					t.Fatalf("%q does not name the %s once", c, o.FullName())
				}
			}
			if strings.ContainsFunc(c, unicode.IsUpper) || strings.Contains(c, "  ") {
				t.Fatalf("bad text %q", c)
			}
		}
	}
	if longest > 25 {
		t.Errorf("longest caption has %d words", longest)
	}
}

func TestCaptionDrawsEveryPhrasing(t *testing.T) {
	s := drawn(1)[0]
	all := s.Captions()
	seen := map[string]int{}
	const n = 4000
	for i := range uint64(n) {
		seen[s.Caption(rng.New(3, rng.Caption, i))]++
	}
	for p, want := range []float64{0.425, 0.2125, 0.2125, 0.15} {
		if got := float64(seen[all[p]]) / n; got < want-0.03 || got > want+0.03 {
			t.Errorf("phrasing %d drawn with share %.3f, want %.3f", p, got, want)
		}
	}
	if len(seen) != len(all) || s.Caption(nil) != all[0] {
		t.Errorf("%d phrasings seen; canonical %q", len(seen), s.Caption(nil))
	}
}

// Each step of a relational caption must be true by the objects' centres.
func TestRelationalCaptionsAreTrue(t *testing.T) {
	for _, s := range drawn(1000) {
		c := s.CaptionIn(Relations)
		switch n := len(s.Objects); n {
		case 1:
			continue
		case 2:
			a, b := s.Objects[0], s.Objects[1]
			for words, holds := range map[string]bool{
				"above": b.Y-a.Y > 1.0/6, "below": a.Y-b.Y > 1.0/6,
				"to the left of": b.X-a.X > 1.0/6, "to the right of": a.X-b.X > 1.0/6,
			} {
				if strings.Contains(c, words) != holds {
					t.Fatalf("%q: %q holds: %v", c, words, holds)
				}
			}
		default:
			parts := strings.Split(c, ", ")
			if len(parts) != n {
				t.Fatalf("%q has %d parts, want %d", c, len(parts), n)
			}
			for i, part := range parts[1:] {
				from, to := s.Objects[i], s.Objects[i+1]
				holds := map[string]bool{
					"to its right": to.X-from.X > 1.0/6, "to its left": from.X-to.X > 1.0/6,
					"below it": to.Y-from.Y > 1.0/6, "above it": from.Y-to.Y > 1.0/6,
				}
				words, _, _ := strings.Cut(part, " a ")
				if !holds[words] {
					t.Fatalf("%q: %q is false", c, words)
				}
			}
		}
	}
}

func ExampleWorld() {
	w, err := New(Config{}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := w.Test(4)
	fmt.Println(s.Caption(nil))
	fmt.Println(s.CaptionIn(Relations))
	// Output:
	// a small orange cross at the top right and a big yellow triangle in the centre
	// a small orange cross above and to the right of a big yellow triangle
}
