package ptb

import (
	"regexp"
	"strings"
	"unicode"
)

// The sets of characters that stand in rules, as what is between the brackets of an expression.
var (
	letters   = inClass(letterRanges)
	digits    = inClass(digitRanges)
	marks     = inClass(markRanges)
	symbols   = inClass(symbolRanges)
	uppercase = upperLetters()
)

const blanks = ` \t\x{A0}\x{2000}-\x{200A}\x{3000}`

var hexadecimal = regexp.MustCompile(`[0-9A-F]{4}`)

// inClass writes ranges in hexadecimal as an expression has them.
func inClass(ranges string) string {
	return hexadecimal.ReplaceAllString(strings.Join(strings.Fields(ranges), ""), `\x{$0}`)
}

// upperLetters are those that Java 7 calls upper case: Roman numerals and letters in circles too, and Cherokee not yet.
func upperLetters() string {
	var b strings.Builder
	b.WriteString(`\x{2160}-\x{216F}\x{24B6}-\x{24CF}`)
	isLetter := regexp.MustCompile(`[` + letters + `]`)
	for r := rune(0); r <= 0xFFFF; r++ {
		if unicode.Is(unicode.Lu, r) && !unicode.Is(unicode.Cherokee, r) && isLetter.MatchString(string(r)) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// anyCase makes the letters outside of brackets stand for either case, and for the other characters that fold to them:
// the Kelvin sign, the long s, the i with a dot that English has not and the one without. A letter in brackets stands
// for itself.
func anyCase(expression string) string {
	var b strings.Builder
	inside := false
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case c == '\\':
			n := 2
			if strings.HasPrefix(expression[i:], `\x{`) {
				n = strings.IndexByte(expression[i:], '}') + 1
			}
			b.WriteString(expression[i : i+n])
			i += n - 1
			continue
		case c == '[':
			inside = true
		case c == ']':
			inside = false
		case !inside && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'):
			b.WriteString("[" + strings.ToLower(string(c)) + strings.ToUpper(string(c)) + folded[c|0x20] + "]")
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

var folded = map[byte]string{'i': `\x{130}\x{131}`, 'k': `\x{212A}`, 's': `\x{17F}`}
