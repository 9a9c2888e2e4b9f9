package scenes

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// saidOf judges a text by its words alone.
func saidOf(t *testing.T, text string, left, right Scene) bool {
	t.Helper()
	count := func(s Scene, words string) (n int) {
		words = strings.TrimPrefix(strings.TrimPrefix(words, "an "), "a ")
		for _, o := range s.Objects {
			all := true
			for _, w := range strings.Fields(words) {
				w = strings.TrimSuffix(strings.Replace(w, "crosses", "cross", 1), "s")
				all = all && (w == "shape" || w == "object" || w == o.Colour.String() || w == strings.TrimSuffix(o.Shape.String(), "s"))
			}
			if all {
				n++
			}
		}
		return n
	}
	m := regexp.MustCompile(`^there (?:is|are) (no |more |)(.+?)( on the left| on the right| on both sides| on one side only|)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("unknown statement %q", text)
	}
	l, r := count(left, m[2]), count(right, m[2])
	switch m[1] + strings.TrimPrefix(m[3], " on ") {
	case "more the left":
		return l > r
	case "more the right":
		return r > l
	case "the left":
		return l > 0
	case "the right":
		return r > 0
	case "both sides":
		return l > 0 && r > 0
	case "one side only":
		return (l > 0) != (r > 0)
	case "no ":
		return l+r == 0
	case "":
		return l+r > 0
	}
	t.Fatalf("unknown statement %q", text)
	return false
}

// TestStatements: each is as true as its words say, of every four with one text two are true in an order that is not always the
// same, and kinds take turns.
func TestStatements(t *testing.T) {
	w, err := New(Config{MinObjects: 2, MaxObjects: 3, ValSamples: 300}, 1)
	if err != nil {
		t.Fatal(err)
	}
	val := func(i uint64) Scene { return w.Val(int(i % uint64(w.NumVal()))) }
	held := map[uint64]bool{}
	for i := range w.NumVal() {
		held[w.Val(i).Key()] = true
	}
	for name, at := range map[string]func(uint64) Scene{"train": w.Train, "val": val} {
		const n = 4 * 72
		orders, texts := map[string]bool{}, map[string]bool{}
		for g := 0; g < n; g += 4 {
			order := ""
			for k := range 4 {
				s := w.Statement(at, 7, name, uint64(g+k))
				if got := saidOf(t, s.Text, s.Pictures[0], s.Pictures[1]); got != s.True {
					t.Errorf("%s %d: %q is %v of %q and %q", name, g+k, s.Text, got, s.Pictures[0].Caption(nil), s.Pictures[1].Caption(nil))
				}
				if want := statementTurns[g/4%len(statementTurns)]; s.Kind != want {
					t.Errorf("%s %d: kind %q, want %q", name, g+k, s.Kind, want)
				}
				if first := w.Statement(at, 7, name, uint64(g)).Text; s.Text != first {
					t.Errorf("%s %d: text %q beside %q", name, g+k, s.Text, first)
				}
				for _, p := range s.Pictures {
					if held[p.Key()] != (name == "val") {
						t.Errorf("%s %d: a picture of another split", name, g+k)
					}
				}
				order += map[bool]string{true: "t", false: "f"}[s.True]
				texts[s.Text] = true
			}
			if strings.Count(order, "t") != 2 {
				t.Errorf("%s %d: %s", name, g, order)
			}
			orders[order] = true
		}
		if len(orders) != 6 || len(texts) < 50 {
			t.Errorf("%s: orders %v, %d texts", name, orders, len(texts))
		}
	}
	a, b := w.Statement(val, 7, "val", 5), w.Statement(val, 7, "val", 5)
	if a.Text != b.Text || a.Pictures[0].Key() != b.Pictures[0].Key() {
		t.Error("a statement changed")
	}
}

// TestStatementsOfFewScenes: where a split has no picture that a statement needs, one is drawn.
func TestStatementsOfFewScenes(t *testing.T) {
	w, err := New(Config{ValSamples: 1, TestSamples: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(4 * len(statementTurns)) {
		s := w.Statement(func(uint64) Scene { return w.Val(0) }, 7, "val", i)
		if got := saidOf(t, s.Text, s.Pictures[0], s.Pictures[1]); got != s.True {
			t.Errorf("%d: %q is %v", i, s.Text, got)
		}
	}
}

// TestStatementWays: a claim is made false in every way, and one picture alone does not tell.
func TestStatementWays(t *testing.T) {
	w, err := New(Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]map[[2]bool]bool{}
	for i := range uint64(4 * 9 * 40) {
		s := w.Statement(w.Train, 7, "train", i)
		if !slices.Contains([]string{"side", "both", "none", "one"}, s.Kind) || s.True {
			continue
		}
		if seen[s.Kind] == nil {
			seen[s.Kind] = map[[2]bool]bool{}
		}
		what, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(s.Text, "there is "), "no "), " on ")
		has := func(k int) bool { return saidOf(t, "there is "+what, s.Pictures[k], s.Pictures[k]) }
		seen[s.Kind][[2]bool{has(0), has(1)}] = true
	}
	for kind, want := range map[string]int{"side": 3, "both": 3, "none": 3, "one": 2} {
		if len(seen[kind]) != want {
			t.Errorf("%s: false in %d ways, want %d", kind, len(seen[kind]), want)
		}
	}
}
