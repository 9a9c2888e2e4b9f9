package tokenizer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// pattern is a string, or a regular expression of Oniguruma.
type pattern struct {
	String string
	Regex  string
}

// UnmarshalJSON implements json.Unmarshaler: {"String": s} or {"Regex": s}.
func (p *pattern) UnmarshalJSON(b []byte) error {
	var f struct {
		String *string
		Regex  *string
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	switch {
	case f.Regex != nil && *f.Regex != "":
		p.Regex = *f.Regex
	case f.String != nil:
		p.String = *f.String
	default:
		return fmt.Errorf("a pattern must be a String or a Regex")
	}
	return nil
}

// Classes of Oniguruma that are ASCII alone in Go, as they stand between brackets.
var classes = map[byte]string{
	's': `\t-\r\x{85}\p{Z}`,
	'd': `\p{Nd}`,
	// letters in circles and squares too
	'w': `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}`,
}

// posixClasses are classes such as [:space:], as they stand between brackets. The others are not those of Unicode's
// categories.
var posixClasses = map[string]string{"space": classes['s'], "digit": classes['d'], "word": classes['w'],
	"punct": `\p{P}\p{S}`, "cntrl": `\p{Cc}`, "xdigit": `0-9A-Fa-f`, "ascii": `\x00-\x7f`}

// dotFlag begins a group with the flag m, by which a dot is a line feed too in Oniguruma.
var dotFlag = regexp.MustCompile(`^\(\?[a-z]*m`)

// latinWords are what Oniguruma takes for words besides where \w stands alone, and not between brackets: digits above
// the line and fractions.
const latinWords = `\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}`

// compile returns the pattern with the meaning that it has in Oniguruma: classes are those of
// Unicode, anchors those of lines. What Go has not, such as looking ahead, or reads as something else, such as
// sets of sets and borders of words, is refused. See matches, which looks ahead for spaces.
func (p pattern) compile() (*regexp.Regexp, error) {
	if len(p.Regex) > longestPattern {
		return nil, fmt.Errorf("tokenizer: pattern %q has %d bytes, at most %d are read", words.Cut(p.Regex, 60),
			len(p.Regex), longestPattern)
	}
	if p.Regex == "" {
		return regexp.MustCompile(regexp.QuoteMeta(p.String)), nil
	}
	refuse := func(what string) (*regexp.Regexp, error) {
		return nil, fmt.Errorf("tokenizer: pattern %q has %s, which is not supported", p.Regex, what)
	}
	var b strings.Builder
	b.WriteString("(?m)")
	brackets := 0
	for i := 0; i < len(p.Regex); i++ {
		c, rest := p.Regex[i], p.Regex[i:]
		switch {
		case c == '\\' && i+1 < len(p.Regex):
			i++
			c = p.Regex[i]
			small := c | 0x20
			if small == 'b' || c == 'Q' { // in Go borders of words in ASCII, and quoted text
				return refuse(`\` + string(c))
			}
			class, ok := classes[small]
			if small == 'w' && brackets == 0 {
				class += latinWords
			}
			switch {
			case !ok:
				b.WriteByte('\\')
				b.WriteByte(c)
			case c == small && brackets > 0:
				b.WriteString(class)
			case c == small:
				b.WriteString("[" + class + "]")
			case brackets > 0:
				return refuse(`\` + string(c) + " between brackets")
			default:
				b.WriteString("[^" + class + "]")
			}
			continue
		case c == '[' && brackets > 0:
			name, _, ok := strings.Cut(strings.TrimPrefix(rest, "[:"), ":]")
			class, known := posixClasses[name]
			if !ok || !known || !strings.HasPrefix(rest, "[:") {
				return refuse("brackets between brackets")
			}
			b.WriteString(class)
			i += len("[::]") + len(name) - 1
			continue
		case brackets > 0 && strings.HasPrefix(rest, "&&"):
			return refuse("&& between brackets")
		case brackets == 0 && strings.HasPrefix(rest, "{,"):
			return refuse("{, without a least number")
		case brackets == 0 && dotFlag.MatchString(rest):
			return refuse("the flag m")
		case c == '[':
			brackets++
		case c == ']' && brackets > 0:
			brackets--
		}
		b.WriteByte(c)
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("tokenizer: pattern %q is not supported: %w", p.Regex, err)
	}
	return re, nil
}
