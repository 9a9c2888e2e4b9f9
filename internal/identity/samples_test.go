package identity

import (
	"fmt"
	"slices"
	"testing"
)

// samples are entries as "name:text", or "text" of entries without a name.
func samples(list ...string) (out []Sample) {
	for _, x := range list {
		name, text := "", x
		for i := range x {
			if x[i] == ':' {
				name, text = x[:i], x[i+1:]
			}
		}
		out = append(out, SampleOf(name, []string{text}))
	}
	return out
}

// What differs between lists is said in words.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		was, now []string
		want     string
	}{
		{[]string{"a:1", "b:2"}, []string{"a:1", "b:2"}, ""},
		{[]string{"a:1", "b:2", "c:3"}, []string{"c:3", "b:2", "a:1"}, "the same 3 samples in another order"},
		{[]string{"a:1", "b:2", "c:3"}, []string{"a:1", "b:x", "c:3"}, "1 sample of another content under the name that it had (the first is 1)"},
		{[]string{"a:1", "b:2", "c:3"}, []string{"b:2", "c:3"}, "2 samples, and there were 3; 1 gone (the first was number 1)"},
		{[]string{"b:2", "c:3"}, []string{"b:2", "a:1", "c:3"}, "3 samples, and there were 2; 1 new (the first is 1)"},
		{[]string{"a:1", "b:2"}, []string{"b:2", "a:x"}, "2 stand in another order; 1 sample of another content under the name that it had (the first is 1)"},
		{[]string{"a:1", "b:2"}, []string{"x:1", "y:2"}, "all 2 samples say what they said in the same order, but have other names (the first is 0)"},
		{[]string{"1", "2", "3"}, []string{"3", "2", "1"}, "the same 3 samples in another order"},
		{[]string{"1", "2", "3"}, []string{"1", "x", "3"}, "1 gone (the first was number 2); 1 new (the first is 1)"},
		{[]string{"a:1", "a:1", "a:2"}, []string{"a:1", "a:2"}, "2 samples, and there were 3; 1 gone (the first was number 2)"},
		{[]string{"a:1", "a:2"}, []string{"a:2", "a:1"}, "the same 2 samples in another order"},
		{nil, []string{"a:1"}, "1 sample, and there were 0; 1 new (the first is 0)"},
		{[]string{"a:1"}, nil, "0 samples, and there were 1; 1 gone (the first was number 1)"},
	} {
		got := Compare(samples(c.was...), samples(c.now...)).Words("sample",
			func(j int) string { return fmt.Sprint(j) })
		if got != c.want {
			t.Errorf("%q, then %q: %s, want %s", c.was, c.now, got, c.want)
		}
	}
	// A name without a text is not a text without a name.
	if slices.Equal(samples("a:"), samples("a")) {
		t.Error("a name counts as a text")
	}
}
