package tokenizer

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestSpaceEnd compares with what tokenizers makes of Qwen's pattern (Split, isolated).
func TestSpaceEnd(t *testing.T) {
	const qwen = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	find := check.Get(pattern{Regex: qwen}.matches())(t)
	for text, want := range map[string][]string{
		"a  b":                  {"a", " ", " b"},
		"a  ":                   {"a", "  "},
		"   a 12":               {"  ", " a", " ", "1", "2"},
		"x \n\n  y":             {"x", " \n\n", " ", " y"},
		"don't STOP'S  ":        {"don", "'t", " STOP", "'S", "  "},
		"a\t\tb":                {"a", "\t", "\tb"},
		" \u00a0 c":             {" \u00a0", " c"},
		"  \n ":                 {"  \n", " "},
		"e\u3000\u3000f 3,  !?": {"e", "\u3000", "\u3000f", " ", "3", ",", " ", " !?"},
		"a\u0085 b":             {"a", "\u0085", " b"},
		"":                      nil,
	} {
		var got []string
		for _, at := range find(text) {
			got = append(got, text[at[0]:at[1]])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, regex := range []string{`a(?!b)`, `^a|\s+(?!\S)|\s+`, `\Aa|\s+(?!\S)|\s+`, `\s+(?!\S)`} {
		check.Fails(pattern{Regex: regex}.matches())(t, "is not supported")
	}
}
