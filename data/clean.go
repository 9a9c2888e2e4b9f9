package data

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/geoalign/geoalign/internal/normalform"
)

// Rules by which captions are cleaned. The last three are those of open_clip; of ftfy, which repairs texts there, they
// have NFC alone.
const (
	CleanALBEF        = "albef"        // CleanCaption
	CleanNone         = "none"         // as they are
	CleanWhitespace   = "whitespace"   // HTML entities read, runs of white space one space, none at the ends
	CleanLower        = "lower"        // and in lower case
	CleanCanonicalize = "canonicalize" // and without ASCII punctuation; _ is a space
)

// Clean prepares a caption by a rule; "" is CleanALBEF, which alone counts words.
func Clean(rule, s string, maxWords int) string {
	switch rule {
	case CleanNone:
		return s
	case CleanWhitespace:
		return joinFields(unescape(s))
	case CleanLower:
		return lower(joinFields(unescape(s)))
	case CleanCanonicalize:
		return joinFields(lower(strings.Map(func(r rune) rune {
			switch {
			case r == '_':
				return ' '
			case r <= unicode.MaxASCII && (unicode.IsPunct(r) || unicode.IsSymbol(r)):
				return -1
			}
			return r
		}, unescape(s))))
	}
	return CleanCaption(s, maxWords)
}

// blank says that a rule leaves nothing of a caption.
func blank(rule, s string) bool { return strings.TrimSpace(Clean(rule, s, 0)) == "" }

// unescape reads HTML entities twice, as captions of the web are often escaped twice.
func unescape(s string) string { return htmlText(htmlText(normalform.String(norm.NFC, s))) }

// joinFields puts one space between the words of s. Separators of information are white space too.
func joinFields(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }), " ")
}

// lower is the lower case of Unicode, with the sigma that ends a word.
func lower(s string) string { return cases.Lower(language.Und).String(s) }
