package data

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Rules by which captions are cleaned. The last three are those of open_clip, which begin with what ftfy repairs.
const (
	CleanALBEF        = "albef"        // CleanCaption
	CleanNone         = "none"         // as they are
	CleanLowercase    = "lowercase"    // in lower case alone, as do_lower_case of sentence-transformers
	CleanWhitespace   = "whitespace"   // HTML entities read, runs of white space one space, none at the ends
	CleanLower        = "lower"        // and in lower case
	CleanCanonicalize = "canonicalize" // and without ASCII punctuation; _ is a space
)

// Clean prepares a caption by a rule; "" is CleanALBEF, which alone counts words.
func Clean(rule, s string, maxWords int) string {
	switch rule {
	case CleanNone:
		return s
	case CleanLowercase:
		return lower(s)
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

// unescape repairs a text and reads HTML entities twice, as captions of the web are often escaped twice.
func unescape(s string) string { return htmlText(htmlText(repaired(s))) }

// joinFields puts one space between the words of s. Separators of information are white space too.
func joinFields(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || r >= 0x1c &&
			r <= 0x1f
	}), " ")
}

// lower is the lower case of Unicode, with the sigma that ends a word.
func lower(s string) string { return cases.Lower(language.Und).String(s) }

// CleanCaption prepares a caption as ALBEF's code does:
// lower case; the characters , . ' ! ? " ( ) * # : ; ~ deleted; '-' and '/'
// become spaces; "<person>" becomes "person"; runs of white space become one
// space and are cut at the ends; the first maxWords words are kept (0: all).
func CleanCaption(s string, maxWords int) string {
	s = strings.Map(func(r rune) rune {
		switch r {
		case ',', '.', '\'', '!', '?', '"', '(', ')', '*', '#', ':', ';', '~':
			return -1
		case '-', '/':
			return ' '
		}
		return r
	}, strings.ToLower(s))
	words := strings.Fields(strings.ReplaceAll(s, "<person>", "person"))
	if maxWords > 0 && len(words) > maxWords {
		words = words[:maxWords]
	}
	return strings.Join(words, " ")
}

// entity is a reference to a character in HTML, by its number or its name.
var entity = regexp.MustCompile(`&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[0-9A-Za-z]+;?)`)

// htmlText reads the entities of HTML as html.unescape of Python does. The package html leaves numbers of one digit
// that no semicolon ends, and keeps controls.
func htmlText(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	return entity.ReplaceAllStringFunc(s, func(e string) string {
		digits, ok := strings.CutPrefix(strings.TrimSuffix(e, ";"), "&#")
		if !ok {
			return html.UnescapeString(e)
		}
		base := 10
		if digits[0]|0x20 == 'x' {
			digits, base = digits[1:], 16
		}
		n, err := strconv.ParseUint(digits, base, 32)
		r := rune(min(n, unicode.MaxRune+1))
		switch {
		case err != nil, r == 0, r > unicode.MaxRune, r >= 0xd800 && r <= 0xdfff:
			return string(unicode.ReplacementChar)
		case r >= 0x80 && r <= 0x9f:
			return html.UnescapeString("&#" + strconv.Itoa(int(r)) + ";") // of Windows-1252
		case r < ' ' && r != '\t' && r != '\n' && r != '\f' && r != '\r', r == 0x7f, r >= 0xfdd0 && r <= 0xfdef,
			r&0xfffe == 0xfffe:
			return "" // no characters of HTML
		}
		return string(r)
	})
}
