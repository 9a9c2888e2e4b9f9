package tokenizer

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/geoalign/geoalign/internal/normalform"
	"golang.org/x/text/unicode/norm"
)

// wordsOf yields the words of text: normalised and split as BERT does.
func wordsOf(text string, opt Options) iter.Seq[string] { return bertWords(normalize(text, opt)) }

// bertWords yields the words of text: split at white space, with every punctuation
// character a word of its own.
func bertWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1
		for i, r := range text {
			space := unicode.IsSpace(r)
			if !space && !punctuation(r) {
				if start < 0 {
					start = i
				}
				continue
			}
			if start >= 0 && !yield(text[start:i]) {
				return
			}
			start = -1
			if !space && !yield(text[i:i+utf8.RuneLen(r)]) {
				return
			}
		}
		if start >= 0 {
			yield(text[start:])
		}
	}
}

// normalize is BERT's normaliser. Character classes are those of Go's Unicode tables;
// readers with older ones treat some rare characters in another way.
func normalize(s string, opt Options) string {
	if plain(s) {
		if opt.Lowercase {
			return strings.ToLower(s)
		}
		return s
	}
	// A word loop over invalid UTF-8 would meet characters of another length
	// than it reads.
	s = strings.ToValidUTF8(s, "")
	if opt.CleanText {
		s = strings.Map(func(r rune) rune {
			switch {
			case r == '\t' || r == '\n' || r == '\r':
				return ' '
			case r == 0 || r == unicode.ReplacementChar || control(r):
				return -1
			case unicode.IsSpace(r):
				return ' '
			}
			return r
		}, s)
	}
	if opt.SplitChinese {
		var b strings.Builder
		for _, r := range s {
			if chinese(r) {
				b.WriteByte(' ')
				b.WriteRune(r)
				b.WriteByte(' ')
				continue
			}
			b.WriteRune(r)
		}
		s = b.String()
	}
	if opt.StripAccents {
		s = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, normalform.String(norm.NFD, s))
	}
	if opt.Lowercase {
		s = lower(s)
	}
	return s
}

// plain reports whether s is printable ASCII: then only the case can change.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// control is Unicode's "other" (controls, format characters, private use,
// surrogates and code points without a character).
func control(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs) || unassigned(r)
}

// unassigned reports code points of no category.
func unassigned(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C)
}

// punctuation is every ASCII character that is neither letter, digit, space nor
// control, and Unicode's punctuation: BERT counts ^ $ ` and the like in.
func punctuation(r rune) bool {
	switch {
	case r >= '!' && r <= '/', r >= ':' && r <= '@', r >= '[' && r <= '`', r >= '{' && r <= '~':
		return true
	}
	return r >= utf8.RuneSelf && unicode.IsPunct(r)
}

// chinese is the CJK blocks that BERT splits into characters.
func chinese(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF ||
		r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2B73F ||
		r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B820 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}
