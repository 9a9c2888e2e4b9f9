package scenes

import (
	"slices"
	"strings"
	"testing"
)

func TestClasses(t *testing.T) {
	w, err := New(Config{Shapes: 3, Colours: 2, ValSamples: 20, TestSamples: 20}, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"red circle", "blue circle", "red square", "blue square", "red triangle", "blue triangle"}
	if got := w.Classes(); !slices.Equal(got, want) {
		t.Errorf("classes %q, want %q", got, want)
	}
	red, blue := Object{Shape: Square, Colour: Red}, Object{Shape: Circle, Colour: Blue}
	bigRed, bigBlue := red, blue
	bigRed.Size, bigBlue.Size = Big, Big
	for _, c := range []struct {
		objects []Object
		want    string
	}{
		{[]Object{red}, "red square"},
		{[]Object{red, blue}, "red square"}, // equally big: the first
		{[]Object{red, bigBlue}, "blue circle"},
		{[]Object{bigRed, bigBlue}, "red square"},
		{[]Object{blue, red, bigRed}, "red square"},
	} {
		if got := w.Classes()[w.Class(Scene{Objects: c.objects})]; got != c.want {
			t.Errorf("%v is a %q, want %q", c.objects, got, c.want)
		}
	}
}

// The class must be readable from the caption: the first "big", else the first object.
func TestClassAgreesWithCaption(t *testing.T) {
	w, err := New(Config{ValSamples: 300, TestSamples: 20}, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	for i := range w.NumVal() {
		s := w.Val(i)
		class := w.Class(s)
		seen[class]++
		words := strings.Fields(s.Caption(nil))
		at := slices.Index(words, "big")
		if at < 0 {
			at = slices.Index(words, "small")
		}
		if got := words[at+1] + " " + words[at+2]; got != w.Classes()[class] {
			t.Errorf("%q is of class %q", s.Caption(nil), w.Classes()[class])
		}
	}
	if len(seen) < 55 { // 300 draws of 64 classes miss 0.6 of them on average
		t.Errorf("%d of 64 classes in 300 scenes", len(seen))
	}
}
