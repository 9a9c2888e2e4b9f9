package eval

import (
	"math"
	"strings"
	"testing"
)

// TestCaptionMetricsByHand has values worked out by hand. "a b c d" against "a b c d e": all n-grams are right, and the
// caption is shorter by one word of five.
func TestCaptionMetricsByHand(t *testing.T) {
	words := strings.Fields
	bleu, err := Bleu([]Captioned{{words("a b c d"), [][]string{words("a b c d e")}}})
	if err != nil {
		t.Fatal(err)
	}
	for n, got := range bleu {
		if want := math.Exp(1 - 5./4); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("BLEU-%d is %v, want %v", n+1, got, want)
		}
	}
	// "the the the" has "the" once in the reference: p_1 = 1/3.
	if bleu, err = Bleu([]Captioned{{words("the the the"), [][]string{words("the cat")}}}); err != nil || !(math.Abs(bleu[0]-1./3) <= 1e-6) {
		t.Errorf("BLEU-1 %v (%v), want a third", bleu[0], err)
	}
	// Two pictures whose texts share nothing: each caption is its reference, so all cosines of n-grams that exist are 1.
	mean, each, err := Cider([]Captioned{
		{words("a b c d"), [][]string{words("a b c d")}},
		{words("e f"), [][]string{words("e f"), words("g h")}},
	})
	if err != nil || !(math.Abs(each[0]-10) <= 1e-9) || !(math.Abs(each[1]-10*2./4/2) <= 1e-9) || !(math.Abs(mean-(10+2.5)/2) <= 1e-9) {
		t.Errorf("CIDEr %v of %v (%v), want 10 and 2.5", mean, each, err)
	}
}

func TestCaptionMetricsErrors(t *testing.T) {
	for _, c := range []struct {
		all  []Captioned
		want string
	}{
		{nil, "no captions to score: give at least one picture"},
		{[]Captioned{{Words: []string{"a"}, References: [][]string{{"a"}}}, {Words: []string{"a"}}}, "caption 1 has no reference: leave its picture out"},
	} {
		_, err := Bleu(c.all)
		_, _, err2 := Cider(c.all)
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		}
	}
}

// FuzzCaptionWords wants an end, and words without spaces.
func FuzzCaptionWords(f *testing.F) {
	for _, c := range []string{"A man's dog isn't (here)...", "n't's'", "a\xff\x00'", "[-lrb-] it`s ‘a’ 1.2:3", "'tis cannot U.S.-a AT&T"} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, caption string) {
		for _, w := range CaptionWords(caption) {
			if w == "" || strings.ContainsAny(w, " \t\n") {
				t.Fatalf("%q has the word %q", caption, w)
			}
		}
	})
}
