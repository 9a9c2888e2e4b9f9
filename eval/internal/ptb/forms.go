package ptb

import (
	"strings"
	"unicode/utf16"
)

// A form says what becomes of a match: the word, "" if there is none, and how many units of the match are read again.
type form func(match []uint16) (word string, again int)

// changed is the form of which the word is a function of the match.
func changed(f func(string) string) form {
	return func(match []uint16) (string, int) { return f(text(match)), 0 }
}

func text(units []uint16) string { return string(utf16.Decode(units)) }

var (
	asIs    = changed(func(s string) string { return s })
	nothing = always("")
	// unbroken has no space.
	unbroken = changed(func(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") })
	brackets = changed(bracketNames.Replace)
	// unbrokenBrackets is both.
	unbrokenBrackets = changed(func(s string) string {
		return bracketNames.Replace(strings.ReplaceAll(s, " ",
			"\u00a0"))
	})
	spelledFraction = changed(strings.NewReplacer("\u00bc", "1/4", "\u00bd", "1/2", "\u00be", "3/4", "\u2153", "1/3",
		"\u2154", "2/3").Replace)
	spelledCurrency = changed(strings.NewReplacer("\u00a2", "cents", "\u00a3", "#", "\u0080", "$", "\u00a4", "$",
		"\u20a0", "$", "\u20ac", "$").Replace)

	bracketNames = strings.NewReplacer("(", "-LRB-", ")", "-RRB-")
)

func always(word string) form { return changed(func(string) string { return word }) }

// lineEnd keeps a line feed. The other ends of lines separate words.
var lineEnd = changed(func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })

// withoutSoft has no soft hyphens. One alone is a hyphen.
var withoutSoft = changed(func(s string) string {
	if s = strings.ReplaceAll(s, "\u00ad", ""); s == "" {
		return "-"
	}
	return s
})

// withAmpersand has & for its entity, in whichever case that is.
func withAmpersand(match []uint16) (string, int) {
	var b strings.Builder
	s := text(match)
	for ; len(s) >= len("&amp;"); s = s[1:] {
		if strings.EqualFold(s[:len("&amp;")], "&amp;") {
			s = "&" + s[len("&amp;"):]
		}
		b.WriteByte(s[0])
	}
	return b.String() + s, 0
}

// dashes of three or four hyphens are one of two.
var dashes = changed(func(s string) string {
	if len(s) == 3 || len(s) == 4 {
		return "--"
	}
	return s
})

// first splits a match that is two words: all but the last n units are the first.
func first(n int) form {
	return func(match []uint16) (string, int) { return text(match[:len(match)-n]), n }
}

// pointTwice is an abbreviation at the end of a sentence: its point is the sentence's too.
func pointTwice(match []uint16) (string, int) { return text(match), 1 }

// initialsAtEnd are the same, but the point after a single letter is the sentence's alone.
func initialsAtEnd(match []uint16) (string, int) {
	if len(match) == 2 {
		return text(match[:1]), 1
	}
	return text(match), 1
}

// quoted writes quotes as LaTeX does. Those without a direction are opening ones if opening is set.
func quoted(opening bool) form {
	single, double := "'", "''"
	if opening {
		single, double = "`", "``"
	}
	names := []string{"'", single, "&apos;", single, `"`, double, "&quot;", double}
	for word, signs := range map[string]string{"`": "\u0091\u2018\u201b\u2039", "'": "\u0092\u2019\u203a",
		"``": "\u0093\u201c\u00ab", "''": "\u0094\u201d\u00bb"} {
		for _, r := range signs {
			names = append(names, string(r), word)
		}
	}
	return changed(strings.NewReplacer(names...).Replace)
}
