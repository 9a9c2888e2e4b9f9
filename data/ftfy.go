package data

import (
	"html"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/geoalign/geoalign/internal/normalform"
)

// repaired is a text as the package ftfy repairs it before open_clip reads it, without its guesses of wrong encodings:
// entities of HTML are read where no tag is, quotation marks are straight, ligatures of Latin letters and characters of
// full or half width are the usual ones, line breaks are line feeds, controls and escapes of terminals are left out, and
// the whole is in NFC. The steps are done until none changes anything.
func repaired(s string) string {
	if plainText(s) {
		return s
	}
	var b strings.Builder
	entities := true
	for segment := range strings.SplitAfterSeq(s, "\n") {
		entities = entities && !strings.Contains(segment, "<")
		for {
			next := segment
			if entities {
				next = wholeEntity.ReplaceAllStringFunc(next, wholeEntityText)
			}
			next = ligatures.Replace(strings.Map(windowsControl, next))
			next = lineBreaks.Replace(quotes.Replace(usualWidth(next)))
			next = strings.Map(withoutControl, terminalEscape.ReplaceAllString(next, ""))
			if next = normalform.String(norm.NFC, next); next == segment {
				break
			}
			segment = next
		}
		b.WriteString(segment)
	}
	return b.String()
}

// plainText says that nothing of a text is to be repaired: ASCII without entities and controls.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c == '&' || c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// wholeEntity is an entity that a semicolon ends.
var wholeEntity = regexp.MustCompile(`&#?[0-9A-Za-z]{1,24};`)

// wholeEntityText reads an entity, also by a name in upper case: the text is that in upper case then.
func wholeEntityText(e string) string {
	text := htmlText(e)
	if name := strings.ToLower(e); text == e && e != name && e == strings.ToUpper(e) {
		if text = htmlText(name); text == name {
			return e
		}
		text = strings.ToUpper(text)
	}
	if strings.HasSuffix(text, ";") && text != ";" {
		return e // only a part of it was read
	}
	return text
}

// windowsControl reads a control of Latin-1 as what Windows-1252 has there.
func windowsControl(r rune) rune {
	if r >= 0x80 && r <= 0x9f {
		r = []rune(html.UnescapeString("&#" + strconv.Itoa(int(r)) + ";"))[0]
	}
	return r
}

var ligatures = strings.NewReplacer("\u0132", "IJ", "\u0133", "ij", "\u0149", "\u02bcn", "\u01f1", "DZ", "\u01f2", "Dz",
	"\u01f3", "dz", "\u01c4", "D\u017d", "\u01c5", "D\u017e", "\u01c6", "d\u017e", "\u01c7", "LJ", "\u01c8", "Lj",
	"\u01c9", "lj", "\u01ca", "NJ", "\u01cb", "Nj", "\u01cc", "nj", "\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl",
	"\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "\u017ft", "\ufb06", "st")

var quotes = strings.NewReplacer("\u02bc", "'", "\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'",
	"\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u201f", `"`)

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u0085", "\n")

// usualWidth writes characters of full and half width as the usual ones.
func usualWidth(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return r == 0x3000 || r >= 0xff01 && r < 0xfff0 })
	if i < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == 0x3000:
			b.WriteByte(' ')
		case r >= 0xff01 && r < 0xfff0:
			b.WriteString(norm.NFKC.String(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// terminalEscape is what colours the text of a terminal.
var terminalEscape = regexp.MustCompile("\x1b\\[[\\p{Nd};]*[a-zA-Z]")

// withoutControl is -1 for a control that no text has.
func withoutControl(r rune) rune {
	switch {
	case r <= 8, r == 0xb, r >= 0xe && r < ' ', r == 0x7f, r >= 0x206a && r <= 0x206f, r == 0xfeff,
		r >= 0xfff9 && r <= 0xfffc:
		return -1
	}
	return r
}
