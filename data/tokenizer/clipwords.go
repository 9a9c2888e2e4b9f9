package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clipWords are the words of CLIP, and clipNames what some of its files have before them.
const (
	clipWords = `'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`
	clipNames = `<\|startoftext\|>|<\|endoftext\|>|`
)

// clipSplitter splits as the regular expression clipWords does, some ten times faster; with names also as
// clipNames says before it. It is nil for another pattern.
func clipSplitter(f splitterFile) splitter {
	pattern, names := strings.CutPrefix(f.Pattern.Regex, clipNames)
	if pattern != clipWords || !f.Invert || f.Behavior != "Removed" {
		return nil
	}
	return func(out []string, s string, _ bool) []string {
		for s != "" {
			n, word := clipWord(s, names)
			if word {
				out = append(out, s[:n])
			}
			s = s[n:]
		}
		return out
	}
}

// clipWord returns the length of the word that s, which is not empty, begins with, or of a white space.
func clipWord(s string, names bool) (n int, word bool) {
	if names {
		for _, name := range []string{"<|startoftext|>", "<|endoftext|>"} {
			if strings.HasPrefix(s, name) {
				return len(name), true
			}
		}
	}
	if n := contraction(s); n > 0 {
		return n, true
	}
	r, n := utf8.DecodeRuneInString(s)
	class := classOf(r)
	if class == spaceClass || class == numberClass {
		return n, class == numberClass
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return classOf(r) != class }); i >= 0 {
		return i, true
	}
	return len(s), true
}

// Classes of characters in patterns of words.
const (
	spaceClass = iota
	letterClass
	numberClass
	otherClass
)

// classOf is the class of a character.
func classOf(r rune) int {
	switch {
	case unicode.IsSpace(r):
		return spaceClass
	case unicode.IsLetter(r):
		return letterClass
	case unicode.IsNumber(r):
		return numberClass
	}
	return otherClass
}

// contractions are words of their own behind an apostrophe.
var contractions = []string{"s", "t", "re", "ve", "m", "ll", "d"}

// contraction returns the length of the contraction that s begins with, 0 for none.
func contraction(s string) int {
	if rest, ok := strings.CutPrefix(s, "'"); ok {
		for _, c := range contractions {
			if strings.HasPrefix(rest, c) {
				return 1 + len(c)
			}
		}
	}
	return 0
}
