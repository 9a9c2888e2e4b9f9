// Package stricttoml refuses what the parser of TOML takes all memory for.
package stricttoml

import (
	"fmt"
	"strings"
)

// Deepest is how deep tables and lists may lie in each other. Files of this program have six levels at most.
const Deepest = 32

// DepthError says where tables and lists lie deeper in each other than Deepest.
type DepthError struct {
	Line int
}

// Error says the depth, without the line.
func (e *DepthError) Error() string {
	return fmt.Sprintf("tables and lists lie in each other here, more than %d deep", Deepest)
}

// Check returns an error for the first line of a text where tables and lists lie deeper in each other than Deepest,
// nil where none does. The parser keeps every key with the keys that it lies in, so its time and memory grow with the
// square of the depth: 20 KB of "a.a.a.a" take 1.3 GB. What is no TOML is left to the parser.
func Check(text string) *DepthError {
	line, brackets, dots := 1, 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			n := quoted(text[i:])
			line += strings.Count(text[i:i+n], "\n")
			i += n - 1
		case '#':
			if n := strings.IndexByte(text[i:], '\n'); n > 0 {
				i += n - 1
			} else {
				i = len(text)
			}
		case '.':
			dots++
		case '[', '{':
			brackets++
			dots = 0
		case ']', '}':
			brackets = max(0, brackets-1)
			dots = 0
		case '\n':
			line++
			dots = 0
		case '=', ',':
			dots = 0
		}
		if brackets+dots > Deepest {
			return &DepthError{line}
		}
	}
	return nil
}

// quoted is the length of the string that a text begins with, its quotes included: one of several lines between three
// quotes, else one that ends with its line. Between double quotes a backslash takes the next byte with it.
func quoted(text string) int {
	mark := text[:1]
	if three := strings.Repeat(mark, 3); strings.HasPrefix(text, three) {
		mark = three
	}
	for i := len(mark); i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], mark):
			return i + len(mark)
		case text[i] == '\\' && mark[0] == '"':
			i++
		case text[i] == '\n' && len(mark) == 1:
			return i
		}
	}
	return len(text)
}
