package eval

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
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
	if bleu, err = Bleu([]Captioned{{words("the the the"), [][]string{words("the cat")}}}); err != nil ||
		!(math.Abs(bleu[0]-1./3) <= 1e-6) {
		t.Errorf("BLEU-1 %v (%v), want a third", bleu[0], err)
	}
	// Two pictures whose texts share nothing: each caption is its reference, so all cosines of n-grams that exist are
	// 1.
	mean, each, err := Cider([]Captioned{
		{words("a b c d"), [][]string{words("a b c d")}},
		{words("e f"), [][]string{words("e f"), words("g h")}},
	})
	if err != nil || !(math.Abs(each[0]-10) <= 1e-9) || !(math.Abs(each[1]-10*2./4/2) <= 1e-9) ||
		!(math.Abs(mean-(10+2.5)/2) <= 1e-9) {
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
			check.Error(t, err, c.want)
		}
	}
}

// TestCaptionWordsByHand: what is in the other captions matters as in the official program, and ends of lines inside a
// caption do not shift the others.
func TestCaptionWordsByHand(t *testing.T) {
	for _, c := range []struct{ captions, want []string }{
		{nil, nil},
		{[]string{""}, []string{""}},
		{[]string{"", "A dog.", ""}, []string{"", "a dog", ""}},
		{[]string{"plan B.", "The dog"}, []string{"plan b", "the dog"}},
		{[]string{"plan B.", "the dog"}, []string{"plan b.", "the dog"}},
		{[]string{"a\ndog\n", "(cat)"}, []string{"a dog", "-lrb- cat -rrb-"}},
		{[]string{"a\rdog\u2028runs\r", "a\v\fcat"}, []string{"a dog runs", "a cat"}},
		{[]string{"1 1/2\u3000cups\x1c", "x.y\x1fz@b"}, []string{"1 1/2 cups", "x.y z@b"}}, // a space inside a token, and what only Python calls a space
		{[]string{"a\xffdog\xf0\x9f"}, []string{"a dog"}},
	} {
		got := CaptionWords(c.captions)
		if len(got) != len(c.want) {
			t.Errorf("%q: %q", c.captions, got)
			continue
		}
		for i, words := range got {
			if s := strings.Join(words, " "); s != c.want[i] {
				t.Errorf("%q: caption %d is %q, want %q", c.captions, i, s, c.want[i])
			}
		}
	}
	references := ReferenceWords([][]string{{"a dog :)", "the"}, {}, {"B.", "He", "it :)"}})
	if got := fmt.Sprint(references); got != "[[[a dog :-rrb-] [the]] [] [[b] [he] [it -rrb-]]]" &&
		got != "[[[a dog :-rrb-] [the]] [] [[b.] [he] [it -rrb-]]]" {
		t.Error(got)
	}
}

// TestCaptionWordsLinear: long texts of which every position could begin a long token are read once, which takes
// seconds for all (and hours otherwise), with memory that grows as they do.
func TestCaptionWordsLinear(t *testing.T) {
	for _, piece := range []string{"<a ", "<a b='", "a@", "http:", "x.[^x=", "\u00ad", "&a", "1-", "A.", "(555) ", ". ",
		"d'", "a.b-", "😀", "a/", "U.S. ", "\n"} {
		caption := strings.Repeat(piece, 1<<19/len(piece))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		CaptionWords([]string{caption})
		runtime.ReadMemStats(&after)
		if all := after.TotalAlloc - before.TotalAlloc; all > 500*1<<19 {
			t.Errorf("%q: %d bytes for each", piece, all>>19)
		}
	}
}

// FuzzCaptionWords wants the words of each caption, without spaces, in at most five times the bytes: a bracket becomes
// -lrb-.
func FuzzCaptionWords(f *testing.F) {
	for _, c := range []string{"A man's dog isn't (here)...", "n't's'", "a\xff\x00'", "[-lrb-] it`s ‘a’ 1.2:3",
		"'tis cannot U.S.-a AT&T", "<a b='\n'> C. \n The", "x.[^x=\n<>] ½ ₠\r\u2028"} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, captions string) {
		defer budgettest.Within(t, len(captions))()
		list := strings.Split(captions, "|")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		words := CaptionWords(list)
		runtime.ReadMemStats(&after)
		// the rules themselves take some
		if all := after.TotalAlloc - before.TotalAlloc; all > uint64(64<<20+500*len(captions)) {
			t.Fatalf("%q takes %d bytes of memory", captions, all)
		}
		if len(words) != len(list) {
			t.Fatalf("%d captions have %d lists of words", len(list), len(words))
		}
		size := 0
		for _, w := range slices.Concat(words...) {
			if size += len(w); w == "" || strings.ContainsAny(w, " \t\n") {
				t.Fatalf("%q has the word %q", captions, w)
			}
		}
		if size > 5*len(captions) {
			t.Fatalf("%q has %d bytes of words", captions, size)
		}
	})
}
