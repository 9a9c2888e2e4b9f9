package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// byteRunes are the characters that byte-level vocabularies write bytes as (Radford et al. 2019):
// printable Latin characters are themselves, the others U+0100 and up.
var byteRunes = func() (t [256]rune) {
	next := rune(256)
	for b := range t {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			t[b] = rune(b)
		default:
			t[b] = next
			next++
		}
	}
	return t
}()

// runeBytes is the way back.
var runeBytes = func() map[rune]byte {
	m := map[rune]byte{}
	for b, r := range byteRunes {
		m[r] = byte(b)
	}
	return m
}()

// toByteLevel writes every byte of s as its character.
func toByteLevel(s string) string {
	same := true
	for i := range len(s) {
		same = same && s[i] >= '!' && s[i] <= '~'
	}
	if same {
		return s
	}
	var b strings.Builder
	b.Grow(2 * len(s))
	for i := range len(s) {
		b.WriteRune(byteRunes[s[i]])
	}
	return b.String()
}

// fromByteLevel is the text that s writes, which may be cut inside a character.
func fromByteLevel(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if c, ok := runeBytes[r]; ok {
			b = append(b, c)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// byteLevel says whether t writes the bytes of words as characters.
func (t *Tokenizer) byteLevel() bool {
	const probe = "\u00e9"
	return t.split != nil && strings.Contains(strings.Join(t.split(nil, probe, false), ""), toByteLevel(probe))
}

// gpt2Word returns the length of the first word of s, which is not empty, by the pattern of GPT-2:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func gpt2Word(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	if r, n := utf8.DecodeRuneInString(s[start:]); n > 0 && !unicode.IsSpace(r) {
		c := classOf(r)
		for i, r := range s[start:] {
			if classOf(r) != c {
				return start + i
			}
		}
		return len(s)
	}
	last := 0 // of a run of white space
	for i, r := range s {
		if !unicode.IsSpace(r) {
			if last > 0 {
				return last // the last one goes with the next word
			}
			return i
		}
		last = i
	}
	return len(s)
}
