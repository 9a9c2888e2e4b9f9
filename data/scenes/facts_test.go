package scenes

import (
	"math"
	"strings"
	"testing"
)

// oracle answers from the words of a question and the raw numbers of a scene:
// it shares neither grid cells nor helper functions with the generator.
type oracle struct {
	t *testing.T
	s Scene
}

func index(list []string, word string) int {
	for i, w := range list {
		if w == word {
			return i
		}
	}
	return -1
}

// find returns the objects that agree with all colour and shape words of text.
func (o oracle) find(text string) []Object {
	var out []Object
	words := strings.Fields(strings.Trim(text, "?"))
	for _, obj := range o.s.Objects {
		ok := true
		for _, w := range words {
			if c := index(colourNames[:], w); c >= 0 && Colour(c) != obj.Colour {
				ok = false
			}
			if f := index(shapeNames[:], w); f >= 0 && Shape(f) != obj.Shape {
				ok = false
			}
		}
		if ok {
			out = append(out, obj)
		}
	}
	return out
}

// the returns the one object that text names.
func (o oracle) the(text string) Object {
	found := o.find(text)
	if len(found) != 1 {
		o.t.Fatalf("%q names %d objects of %q", text, len(found), o.s.Caption(nil))
	}
	return found[0]
}

// place names the nearest of the nine cell centres.
func (o oracle) place(obj Object) string {
	rows, columns := []string{"top", "", "bottom"}, []string{"left", "", "right"}
	nearest := func(x float64) int { return int(math.Round((x - 1.0/6) * 3)) }
	name := strings.TrimSpace(rows[nearest(obj.Y)] + " " + columns[nearest(obj.X)])
	if name == "" {
		return "centre"
	}
	return name
}

// relation evaluates "the A is above the B" by centres.
func (o oracle) relation(text string) (holds, ok bool) {
	for _, words := range []string{"to the left of", "to the right of", "above", "below"} {
		left, right, found := strings.Cut(text, " "+words+" ")
		if !found {
			continue
		}
		a, b := o.the(left), o.the(right)
		dx, dy := b.X-a.X, b.Y-a.Y
		d := map[string]float64{"to the left of": dx, "to the right of": -dx, "above": dy, "below": -dy}[words]
		return d > 1.0/6, true
	}
	return false, false
}

func (o oracle) answer(q string) string {
	yesNo := map[bool]string{true: "yes", false: "no"}
	size := func(obj Object) string {
		if obj.Radius > 0.11 {
			return "big"
		}
		return "small"
	}
	switch {
	case strings.HasPrefix(q, "how many"):
		return []string{"zero", "one", "two", "three", "four"}[len(o.find(q))]
	case strings.HasPrefix(q, "what colour"):
		return o.the(q).Colour.String()
	case strings.HasPrefix(q, "what shape"):
		return o.the(q).Shape.String()
	case strings.HasPrefix(q, "where"):
		return o.place(o.the(q))
	case strings.HasPrefix(q, "is there"):
		return yesNo[len(o.find(q)) > 0]
	case strings.HasSuffix(q, "small or big?"):
		return size(o.the(q))
	}
	holds, ok := o.relation(q)
	if !ok {
		o.t.Fatalf("question %q is of no known kind", q)
	}
	return yesNo[holds]
}

func TestQuestionsByOracle(t *testing.T) {
	answers := map[string]int{}
	total := 0
	for _, s := range drawn(1000) {
		o := oracle{t, s}
		seen := map[string]bool{}
		for _, qa := range s.Questions() {
			if want := o.answer(qa.Question); qa.Answer != want {
				t.Fatalf("%q: %q answered %q, want %q", s.Caption(nil), qa.Question, qa.Answer, want)
			}
			answers[qa.Answer]++
			total++
			if seen[qa.Question] && qa.Answer != "no" { // the same absent object may be drawn twice
				t.Fatalf("%q asked twice", qa.Question)
			}
			seen[qa.Question] = true
		}
	}
	if answers["zero"] == 0 {
		t.Error("no question has the answer zero")
	}
	if yes, no := answers["yes"], answers["no"]; math.Abs(float64(yes-no)) > 0.05*float64(yes+no) {
		t.Errorf("%d yes, %d no", yes, no)
	}
}

func TestStatementsByOracle(t *testing.T) {
	right := 0
	total := 0
	for _, s := range drawn(1000) {
		o := oracle{t, s}
		for _, st := range s.Statements() {
			var want bool
			words := strings.Fields(st.Text)
			last := words[len(words)-1]
			holds, isRelation := o.relation(st.Text)
			switch {
			case isRelation:
				want = holds
			case last == "objects" || last == "object":
				want = o.answer("how many objects are there?") == words[2]
			case words[0] == "there":
				want = len(o.find(st.Text)) > 0
			case last == "small" || last == "big":
				want = o.answer(st.Text+" small or big?") == last
			default:
				// "the red circle is at the top left"
				name, place, ok := strings.Cut(st.Text, " is ")
				if !ok {
					t.Fatalf("statement %q is of no known kind", st.Text)
				}
				_, place, _ = strings.Cut(place, "the ")
				want = o.place(o.the(name)) == place
			}
			if st.True != want {
				t.Fatalf("%q: %q is %v, want %v", s.Caption(nil), st.Text, st.True, want)
			}
			total++
			if st.True {
				right++
			}
		}
	}
	if right*2 != total {
		t.Errorf("%d of %d statements are true", right, total)
	}
}

func TestPhrasesPointIntoCaption(t *testing.T) {
	for _, s := range drawn(500) {
		caption := s.Caption(nil)
		phrases := s.Phrases()
		if len(phrases) != len(s.Objects) {
			t.Fatalf("%d phrases for %d objects", len(phrases), len(s.Objects))
		}
		for i, p := range phrases {
			o := s.Objects[i]
			if caption[p.Start:p.End] != p.Text || p.Object != i || p.Box != o.Box() {
				t.Fatalf("phrase %+v of %q", p, caption)
			}
			if !strings.HasSuffix(p.Text, o.Colour.String()+" "+o.Shape.String()) {
				t.Fatalf("phrase %q for a %s", p.Text, o.Name())
			}
		}
	}
}

func TestFactsRepeat(t *testing.T) {
	s := drawn(1)[0]
	for range 3 {
		a, b := s.Questions(), s.Questions()
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("question %d changed from %v to %v", i, a[i], b[i])
			}
		}
	}
}
