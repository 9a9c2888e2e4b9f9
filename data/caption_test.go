package data

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

func TestCleanCaption(t *testing.T) {
	for _, c := range []struct {
		in    string
		words int
		want  string
	}{
		// Every rule at once.
		{`A man's <person>-like  dog/cat, (running)!`, 30, "a mans person like dog cat running"},
		// Every character that is deleted.
		{`,a.b'c!d?e"f(g)h*i#j:k;l~`, 0, "abcdefghijkl"},
		{"one-two/three", 0, "one two three"},
		{" \n A  dog.\n", 0, "a dog"},
		{"a b c d e", 3, "a b c"},
		{"a - b", 2, "a b"},
		{"<person>s and <PERSON>", 0, "persons and person"},
		{"keep @ $ % & + = [ ] { } < >", 0, "keep @ $ % & + = [ ] { } < >"},
		{"\u00c9T\u00c9", 0, "\u00e9t\u00e9"},
		{"...", 0, ""},
		{"", 5, ""},
	} {
		if got := CleanCaption(c.in, c.words); got != c.want {
			t.Errorf("%q, %d words: %q, want %q", c.in, c.words, got, c.want)
		}
	}
}

func FuzzCleanCaption(f *testing.F) {
	f.Add(`A man's <person>-like  dog/cat, (running)!`, 4)
	f.Add("\xff\u2028<per.son>", 0)
	f.Fuzz(func(t *testing.T, s string, n int) {
		defer budgettest.Within(t, len(s))()
		got := CleanCaption(s, n)
		if strings.ContainsAny(got, ",.'!?\"()*#:;~-/\n\t") || strings.Contains(got, "  ") || strings.TrimSpace(got) != got {
			t.Errorf("%q became %q", s, got)
		}
		if n > 0 && len(strings.Fields(got)) > n {
			t.Errorf("%q has more than %d words", got, n)
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
	})
}
