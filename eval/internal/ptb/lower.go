package ptb

import (
	"slices"
	"strings"
	"unicode"
)

// lower returns a word in lower case as Java has it for English: as strings.ToLower, but for the capital I with a dot,
// which keeps its dot, and for the capital sigma at the end of a word.
func lower(word string) string {
	if !strings.ContainsAny(word, "\u0130\u03a3") {
		return strings.ToLower(word)
	}
	var b strings.Builder
	runes := []rune(word)
	for i, end := 0, 0; i < len(runes); i = end {
		end = i + javaWord(runes[i:])
		for k := i; k < end; k++ {
			switch r := runes[k]; {
			case r == '\u0130':
				b.WriteString("i\u0307")
			case r == '\u03a3' && hasCase(runes[i:k]) && !hasCase(runes[k+1:end]):
				b.WriteRune('\u03c2')
			default:
				b.WriteRune(unicode.ToLower(r))
			}
		}
	}
	return b.String()
}

// hasCase says whether some rune is a letter of either case.
func hasCase(runes []rune) bool {
	return slices.ContainsFunc(runes, func(r rune) bool {
		return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt,
			cased)
	})
}

// cased are characters of other categories that Java counts as letters of a case.
var cased = rangetable("\u02b0\u02b8\u02c0\u02c1\u02e0\u02e4\u0345\u0345\u037a\u037a\u1d2c\u1d61\u2160\u217f\u24b6\u24e9")

// single are letters that Java takes for a word each: Japanese and Chinese ones.
var single = rangetable("\u3005\u3005\u3041\u3094\u309d\u309e\u30a1\u30fe\u4e00\u9fa5\uf900\ufa2d")

// rangetable makes a table of pairs of a first and a last character.
func rangetable(pairs string) *unicode.RangeTable {
	t, ends := &unicode.RangeTable{}, []rune(pairs)
	for i := 0; i < len(ends); i += 2 {
		t.R16 = append(t.R16, unicode.Range16{Lo: uint16(ends[i]), Hi: uint16(ends[i+1]), Stride: 1})
	}
	return t
}

// javaWord is the length of the first word of some runes, by the rules of Java's java.text.BreakIterator: letters and
// digits, with a mark between two letters or between two digits. Marks that belong to the character before them and
// what is invisible do not count. Anything else is a word by itself.
func javaWord(runes []rune) int {
	last := kindOf(runes[0])
	for i, r := range runes[1:] {
		kind := kindOf(r)
		if kind == attached {
			continue
		}
		if last != letterKind && last != digitKind {
			return i + 1
		}
		if kind == otherKind {
			if !isBetween(r, last) || !goesOn(runes[i+2:], last) {
				return i + 1
			}
			continue
		}
		last = kind
	}
	return len(runes)
}

// isBetween says whether a mark may stand between two letters or two digits.
func isBetween(r rune, kind runeKind) bool {
	if kind == digitKind {
		return strings.ContainsRune("\"',\u066b.", r)
	}
	return strings.ContainsRune("\u00ad\u2027\"'.", r) || unicode.In(r, unicode.Pd, unicode.Pc)
}

// goesOn says whether runes begin with a kind, behind what is invisible.
func goesOn(runes []rune, kind runeKind) bool {
	for _, r := range runes {
		if r == softHyphen || !unicode.Is(unicode.Cf, r) {
			return kindOf(r) == kind
		}
	}
	return false
}

type runeKind int

const (
	otherKind runeKind = iota
	letterKind
	digitKind
	attached
)

const softHyphen = '\u00ad'

func kindOf(r rune) runeKind {
	switch {
	case r == softHyphen || unicode.Is(single, r):
		return otherKind
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return attached
	case unicode.In(r, unicode.L, unicode.Mc):
		return letterKind
	case unicode.Is(unicode.N, r):
		return digitKind
	}
	return otherKind
}
