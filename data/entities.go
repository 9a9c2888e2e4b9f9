package data

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// entity is a reference to a character in HTML, by its number or its name.
var entity = regexp.MustCompile(`&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[0-9A-Za-z]+;?)`)

// htmlText reads the entities of HTML as html.unescape of Python does. The package html leaves numbers of one digit that no semicolon ends,
// and keeps controls.
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
		case r < ' ' && r != '\t' && r != '\n' && r != '\f' && r != '\r', r == 0x7f, r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe:
			return "" // no characters of HTML
		}
		return string(r)
	})
}
