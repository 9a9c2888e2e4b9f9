package words

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns text of others, a name of a file or a caption, as it may be printed on a
// terminal: what a terminal would obey instead of showing it is written as %q and JSON write
// it, \u001b. These are control characters, marks that turn the direction of the text, and
// bytes that are not UTF-8 (\x9b). Line feeds and tabs stay.
func Visible(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Inline is Visible of text within a line, a cell of a table as a rule: line feeds and tabs are written as \n and \t
// too.
func Inline(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(text))
}

// obeyed reports whether a terminal does something at r other than drawing it. All such
// characters have at most four hexadecimal digits.
func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
