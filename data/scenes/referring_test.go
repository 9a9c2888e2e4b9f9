package scenes

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/rng"
)

// meant lists the objects that an expression is true of, by its words alone.
func meant(t *testing.T, s Scene, text string) (list []int) {
	t.Helper()
	rest, ok := strings.CutPrefix(text, "the ")
	if !ok {
		t.Fatalf("%q", text)
	}
	for x, o := range s.Objects {
		words := strings.Fields(rest)
		fits := true
		for len(words) > 0 && fits {
			w := words[0]
			words = words[1:]
			switch {
			case w == "object":
				goto where
			case w == o.Shape.String():
				goto where
			default:
				fits = w == o.Colour.String() || w == o.Size.String()
			}
		}
		continue
	where:
		said := strings.Join(words, " ")
		switch {
		case said == "" || said == o.Place.Phrase():
			list = append(list, x)
		default:
			for y, from := range s.Objects {
				relation, ok := strings.CutSuffix(said, " the "+from.Name())
				if !ok || x == y {
					continue
				}
				dx, dy := o.Place.Column()-from.Place.Column(), o.Place.Row()-from.Place.Row()
				if (!strings.Contains(relation, "left") || dx < 0) && (!strings.Contains(relation, "right") || dx > 0) &&
					(!strings.Contains(relation, "above") || dy < 0) && (!strings.Contains(relation, "below") || dy > 0) {
					list = append(list, x)
				}
			}
		}
	}
	return list
}

// TestRefer: an expression is true of its object and of no other, and all kinds and objects are drawn.
func TestRefer(t *testing.T) {
	w, err := New(Config{Shapes: 3, Colours: 3, ValSamples: 5, TestSamples: 5}, 1) // many look alike
	if err != nil {
		t.Fatal(err)
	}
	kinds, objects, texts := map[string]int{}, map[int]int{}, map[string]bool{}
	for i := range uint64(4000) {
		s := w.Train(i)
		e := s.Refer(rng.New(3, "test", i))
		if got := meant(t, s, e.Text); len(got) != 1 || got[0] != e.Object {
			t.Fatalf("%q is true of objects %v of %+v, want %d", e.Text, got, s.Objects, e.Object)
		}
		if again := s.Refer(rng.New(3, "test", i)); again != e {
			t.Fatalf("%q, then %q", e.Text, again.Text)
		}
		kinds[e.Kind]++
		objects[e.Object]++
		texts[e.Text] = true
	}
	if len(kinds) != 3 || kinds[ByLook] < 1800 || kinds[ByRelation] < 500 || kinds[ByPlace] < 800 || len(objects) != 4 || len(texts) < 900 {
		t.Errorf("kinds %v, objects %v, %d texts", kinds, objects, len(texts))
	}
}

// TestProposals: the box of each object is among them, and the other six are right for none.
func TestProposals(t *testing.T) {
	w, err := New(Config{ValSamples: 5, TestSamples: 5}, 1)
	if err != nil {
		t.Fatal(err)
	}
	first := 0
	for i := range uint64(500) {
		s := w.Train(i)
		list := s.Proposals(rng.New(4, "test", i))
		if len(list) != len(s.Objects)+6 {
			t.Fatalf("%d boxes for %d objects", len(list), len(s.Objects))
		}
		right := 0
		for k, b := range list {
			if b.X0 < 0 || b.Y0 < 0 || b.X1 > 1 || b.Y1 > 1 || b.area() <= 0 {
				t.Fatalf("box %+v", b)
			}
			for _, o := range s.Objects {
				if v := b.overlap(o.Box()); v >= 0.6 {
					right++
					if k == 0 {
						first++
					}
				} else if v > mostOverlap {
					t.Fatalf("a box overlaps an object by %v", v)
				}
			}
		}
		if right != len(s.Objects) {
			t.Errorf("scene %d: %d boxes are right, of %d objects", i, right, len(s.Objects))
		}
	}
	if first < 50 || first > 250 { // one in four
		t.Errorf("the first box is an object's %d times of 500", first)
	}
}
