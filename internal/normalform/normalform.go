// Package normalform has the normal forms of Unicode (UAX 15) for texts of any kind. Those of package norm put a joiner
// into runs of more than 30 marks (UAX 15, section 13, the stream-safe format), and sort and compose on either side of
// it alone, which no other program does.
package normalform

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// joiner is what package norm puts into long runs of marks.
const joiner = "\u034f"

// String returns s in a normal form.
func String(f norm.Form, s string) string {
	n := f.String(s)
	if strings.Contains(n, joiner) && strings.Count(n, joiner) > strings.Count(s, joiner) {
		return whole(f, s)
	}
	return n
}

// whole is String by the definition: characters are decomposed, marks sorted by their classes, and the text composed
// again.
func whole(f norm.Form, s string) string {
	apart := norm.NFD
	if f == norm.NFKC || f == norm.NFKD {
		apart = norm.NFKD
	}
	var text []rune
	for _, r := range s {
		text = append(text, []rune(apart.String(string(r)))...)
	}
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && class(text[end]) > 0 {
			end++
		}
		slices.SortStableFunc(text[i:end], func(a, b rune) int { return int(class(a)) - int(class(b)) })
		i = end + 1
	}
	if f == norm.NFC || f == norm.NFKC {
		text = compose(text)
	}
	return string(text)
}

// class is the canonical combining class of a character, 0 for what is not a mark.
func class(r rune) uint8 { return norm.NFD.PropertiesString(string(r)).CCC() }

// compose joins each character to the last one of class 0 before it where both have a composite and nothing between
// them is in the way: a character of class 0, or of the same class or a higher one (UAX 15, D115 and D117). It works in
// place.
func compose(text []rune) []rune {
	out, base, last := text[:0], -1, uint8(0) // last is the class of the character before
	for _, r := range text {
		c := class(r)
		if base >= 0 && (base == len(out)-1 || last < c) {
			if both := []rune(norm.NFC.String(string([]rune{out[base], r}))); len(both) == 1 {
				out[base] = both[0]
				continue
			}
		}
		if c == 0 {
			base = len(out)
		}
		out, last = append(out, r), c
	}
	return out
}
