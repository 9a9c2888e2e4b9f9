package scenes

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/rng"
)

// answerOf answers a question about a scene from its words alone, by rules that share nothing with those that ask.
func answerOf(t *testing.T, s Scene, text string) string {
	t.Helper()
	text = strings.TrimSuffix(text, "?")
	// described returns the objects that words describe: "circle", "red circle", "small red circle", "red object", "object at the top left".
	described := func(words string) (found []Object) {
		words, place, placed := cutPlace(words)
		for _, o := range s.Objects {
			fits := !placed || o.Place == place
			for _, w := range strings.Fields(words) {
				w = strings.TrimSuffix(w, "s")
				fits = fits && (w == "object" || w == o.Size.String() || w == o.Colour.String() ||
					w == o.Shape.String() || w == strings.TrimSuffix(o.Shape.String(), "s") || w == "crosse" && o.Shape == Cross)
			}
			if fits {
				found = append(found, o)
			}
		}
		return found
	}
	one := func(words string) Object {
		found := described(words)
		if len(found) != 1 {
			t.Fatalf("%q: %d objects are %q", text, len(found), words)
		}
		return found[0]
	}
	yes := map[bool]string{true: "yes", false: "no"}
	switch {
	case strings.HasPrefix(text, "what colour is the "):
		return one(text[len("what colour is the "):]).Colour.String()
	case strings.HasPrefix(text, "what shape is the "):
		return one(text[len("what shape is the "):]).Shape.String()
	case strings.HasPrefix(text, "how big is the "):
		return one(text[len("how big is the "):]).Size.String()
	case strings.HasPrefix(text, "where is the "):
		return one(text[len("where is the "):]).Place.String()
	case strings.HasPrefix(text, "how many "):
		return []string{"none", "one", "two", "three", "four"}[len(described(strings.TrimSuffix(text[len("how many "):], " are there")))]
	case strings.HasPrefix(text, "is there a "):
		return yes[len(described(text[len("is there a "):])) > 0]
	}
	for words, holds := range map[string]func(a, b Object) bool{
		" above ":           func(a, b Object) bool { return b.Y-a.Y > 1./6 },
		" below ":           func(a, b Object) bool { return a.Y-b.Y > 1./6 },
		" to the left of ":  func(a, b Object) bool { return b.X-a.X > 1./6 },
		" to the right of ": func(a, b Object) bool { return a.X-b.X > 1./6 },
	} {
		if a, b, ok := strings.Cut(strings.TrimPrefix(text, "is the "), words+"the "); ok {
			return yes[holds(one(a), one(b))]
		}
	}
	t.Fatalf("nobody understands %q", text)
	return ""
}

// cutPlace takes the longest name of a place off the end of words.
func cutPlace(words string) (rest string, place Place, ok bool) {
	for p := range Place(numPlaces) {
		if r, found := strings.CutSuffix(words, " "+p.Phrase()); found {
			return r, p, true
		}
	}
	return words, 0, false
}

// Every answer must be the one that the scene gives to the words, and one of those that the world lists.
func TestAnswersAreTrue(t *testing.T) {
	for _, cfg := range []Config{{}, {Shapes: 2, Colours: 2, ValSamples: 9, TestSamples: 9}, {Shapes: 1, Colours: 8, Sizes: 1, ValSamples: 9, TestSamples: 9}} {
		w := newWorld(t, cfg, 3)
		all := w.Answers()
		if sorted := slices.Sorted(slices.Values(all)); len(slices.Compact(sorted)) != len(all) {
			t.Fatalf("an answer is listed twice: %q", all)
		}
		for i := range uint64(4000) {
			s := w.Train(i)
			q := w.Question(s, rng.New(3, "questions", i))
			if want := answerOf(t, s, q.Text); q.Answer != want {
				t.Fatalf("%s: %q is answered %q, want %q", s.Caption(nil), q.Text, q.Answer, want)
			}
			if !slices.Contains(all, q.Answer) || !slices.Contains(QuestionKinds(), q.Kind) {
				t.Fatalf("%q, %q: the answer or the kind %q is not listed", q.Text, q.Answer, q.Kind)
			}
		}
	}
}

// TestAnswersAreBalanced wants no answer of a kind to be frequent: whoever answers without looking gets little.
func TestAnswersAreBalanced(t *testing.T) {
	w := newWorld(t, Config{}, 5)
	const n = 20000
	byKind, byText := map[string]map[string]int{}, map[string]map[string]int{}
	total, texts := map[string]int{}, map[string]int{}
	for i := range uint64(n) {
		q := w.Question(w.Train(i), rng.New(5, "questions", i))
		if byKind[q.Kind] == nil {
			byKind[q.Kind] = map[string]int{}
		}
		if byText[q.Text] == nil {
			byText[q.Text] = map[string]int{}
		}
		byKind[q.Kind][q.Answer]++
		byText[q.Text][q.Answer]++
		total[q.Kind]++
		texts[q.Text]++
	}
	most := func(m map[string]int) (best int) {
		for _, c := range m {
			best = max(best, c)
		}
		return best
	}
	guessed := 0
	for kind, limit := range map[string]float64{
		AskColour: .16, AskShape: .16, AskSize: .53, AskPlace: .14, AskCount: .40, AskExists: .53, AskRelation: .53,
	} {
		share := float64(most(byKind[kind])) / float64(total[kind])
		t.Logf("%s: %d questions, the most frequent answer has %.3f", kind, total[kind], share)
		if share > limit {
			t.Errorf("%s: the most frequent answer has a share of %.3f, want at most %.2f", kind, share, limit)
		}
		if kind != AskRelation && total[kind] < n/8 {
			t.Errorf("%s: %d questions of %d", kind, total[kind], n)
		}
		guessed += most(byKind[kind])
	}
	t.Logf("the best answer for each kind: %.3f", float64(guessed)/n)
	if guessed > n*37/100 {
		t.Errorf("who knows the kinds alone answers %d of %d", guessed, n)
	}
	// The words of a question tell nothing of yes and no.
	for text, count := range texts {
		if m := byText[text]; count >= 60 && (m["yes"] > 0) && float64(most(m)) > .75*float64(count) {
			t.Errorf("%q: %v", text, m)
		}
	}
}

// The hash pins the questions: a change of it means that numbers measured before are no longer comparable.
func TestQuestionsGolden(t *testing.T) {
	w := newWorld(t, Config{}, 7)
	h := fnv.New64a()
	for i := range uint64(200) {
		fmt.Fprintln(h, w.Question(w.Test(int(i)), rng.New(7, "questions", i)))
	}
	if got, want := fmt.Sprintf("%016x", h.Sum64()), "b7f14a372ec515a1"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func ExampleWorld_Question() {
	w, err := New(Config{}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := w.Test(4)
	fmt.Println(s.Caption(nil))
	for i := range uint64(4) {
		q := w.Question(s, rng.New(1, "questions", i))
		fmt.Printf("%s %s (%s)\n", q.Text, q.Answer, q.Kind)
	}
	// Output:
	// a small orange cross at the top right and a big yellow triangle in the centre
	// what shape is the yellow object? triangle (shape)
	// what shape is the yellow object? triangle (shape)
	// how big is the orange cross? small (size)
	// how many stars are there? none (count)
}
