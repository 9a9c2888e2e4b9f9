package eval

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
)

// The answers that 0 to 10 of ten people gave.
func TestVQAAccuracyOfTen(t *testing.T) {
	for k, want := range []float64{0, .3, .6, .9, 1, 1, 1, 1, 1, 1, 1} {
		given := append(slices.Repeat([]string{"red"}, k), slices.Repeat([]string{"blue"}, 10-k)...)
		if got := VQAAccuracy("red", given); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("given by %d: %v, want %v", k, got, want)
		}
	}
}

func TestNormalizeVQA(t *testing.T) {
	for text, want := range map[string]string{
		"The Dogs.":         "dogs",
		"two":               "2",
		"none":              "0",
		"dont":              "don't",
		"youd've":           "you'd've",
		"red/blue":          "red blue",
		"red/ blue":         "red blue", // the mark stands beside a space: it goes without one
		"a-b - c":           "ab c",
		"1,000":             "1000",
		"1,000-2":           "10002",
		"3.5":               "3.5",
		"U.S.A.":            "usa",
		"somebody'd":        "somebodyd",
		"an apple, a pear":  "apple pear",
		"what is it?":       "what is it",
		"\"quoted\" (word)": "quoted word",
	} {
		if got := NormalizeVQA(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	// Where all agree, nothing is normalized.
	same, other := slices.Repeat([]string{"yes"}, 10), append(slices.Repeat([]string{"yes"}, 9), "no")
	if VQAAccuracy("Yes", same) != 0 || VQAAccuracy("\tyes\n", same) != 1 || VQAAccuracy("Yes.", other) != 1 {
		t.Error("answers are normalized where people disagree, and there alone")
	}
}

func TestAnnotators(t *testing.T) {
	got := Annotators([]data.Answer{{Text: "red", Weight: .7}, {Text: "pink", Weight: .2}, {Text: "rose", Weight: .1}})
	if want := strings.Fields("red red red red red red red pink pink rose"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// One of ten gave a blank answer: official accuracies are means over all ten.
	got = Annotators([]data.Answer{{Text: "cat", Weight: .7}, {Text: "dog", Weight: .2}})
	if want := strings.Fields("cat cat cat cat cat cat cat dog dog"); !slices.Equal(got, append(want, "")) {
		t.Errorf("%q", got)
	}
	if cat, dog := VQAAccuracy("cat", got), VQAAccuracy("dog", got); cat != 1 || !(math.Abs(dog-.6) <= 1e-12) {
		t.Errorf("beside a blank answer: %v and %v, want 1 and 0.6", cat, dog)
	}
	for _, w := range []float32{1, .5, 0} { // Visual Genome has one answer, of weight .5
		if got := Annotators([]data.Answer{{Text: "red", Weight: w}}); VQAAccuracy("red", got) != 1 ||
			VQAAccuracy("blue", got) != 0 {
			t.Errorf("a single answer of weight %v: %q", w, got)
		}
	}
	if got := Annotators(nil); got != nil || VQAAccuracy("red", got) != 0 {
		t.Errorf("no answers: %q", got)
	}
}
