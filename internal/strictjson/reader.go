package strictjson

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Reader reads a JSON text from its beginning to its end in one pass, and is as strict as encoding/json and Check
// together. It is for files of many small values: its strings are parts of one copy of the text.
type Reader struct {
	text string
	at   int
}

// deepest is how many lists and objects may lie within each other, as in encoding/json.
const deepest = 10000

// NewReader returns a reader of b, which must be UTF-8.
func NewReader(b []byte) (*Reader, error) {
	if at := invalid(b); at >= 0 {
		return nil, notUTF8(b, at)
	}
	return &Reader{text: string(b)}, nil
}

// Peek returns the first byte of the next value or sign, 0 at the end of the text.
func (r *Reader) Peek() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// At is the place of the reader in the text, in bytes.
func (r *Reader) At() int { return r.at }

// Since returns the text from a place to that of the reader.
func (r *Reader) Since(at int) string { return r.text[at:r.at] }

// wants is the error of a text that goes on otherwise.
func (r *Reader) wants(what string) error {
	if r.Peek() == 0 && r.at >= len(r.text) {
		return fmt.Errorf("the text ends at byte %d, where %s must be: is the file whole?", r.at, what)
	}
	c, _ := utf8.DecodeRuneInString(r.text[r.at:])
	return fmt.Errorf("byte %d must be %s (got %q)", r.at+1, what, c)
}

// sign reads one byte.
func (r *Reader) sign(c byte) error {
	if r.Peek() != c {
		return r.wants(strconv.Quote(string(c)))
	}
	r.at++
	return nil
}

// End returns an error where there is more than one value.
func (r *Reader) End() error {
	if r.Peek() != 0 || r.at < len(r.text) {
		return r.wants("the end of the text")
	}
	return nil
}

// list reads what lies between two signs, with commas.
func (r *Reader) list(open, end byte, each func() error) error {
	if err := r.sign(open); err != nil {
		return err
	}
	if r.Peek() == end {
		r.at++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		switch r.Peek() {
		case ',':
			r.at++
		case end:
			r.at++
			return nil
		default:
			return r.wants(fmt.Sprintf("%q or %q", ',', end))
		}
	}
}

// Array reads a list: each reads the next value.
func (r *Reader) Array(each func() error) error { return r.list('[', ']', each) }

// Members reads an object: each reads the value of a key. A key may come twice: each has to know.
func (r *Reader) Members(each func(key string) error) error {
	return r.list('{', '}', func() error {
		key, err := r.String()
		if err != nil {
			return err
		}
		if err := r.sign(':'); err != nil {
			return err
		}
		return each(key)
	})
}

// Twice is the error of a key that is in an object twice.
func Twice(key string) error {
	text, err := json.Marshal(key)
	if err != nil {
		return err
	}
	return fmt.Errorf("key %s is there twice: leave one of them out", text)
}

// Object reads an object in which each key is there once.
func (r *Reader) Object(each func(key string) error) error {
	seen := map[string]bool{}
	return r.Members(func(key string) error {
		if seen[key] {
			return Twice(key)
		}
		seen[key] = true
		return each(key)
	})
}

// Except reads an object whose large members special reads, by their keys, and returns the others as an object.
func (r *Reader) Except(special map[string]func() error) ([]byte, error) {
	rest := []byte{'{'}
	err := r.Object(func(key string) error {
		if read := special[key]; read != nil {
			return read()
		}
		value, err := r.Value()
		if err != nil {
			return err
		}
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(append(rest, name...), ':'), value...)
		return nil
	})
	return append(rest, '}'), err
}

// Value reads any value and returns its text.
func (r *Reader) Value() (string, error) {
	r.Peek()
	start := r.at
	err := r.skip(0)
	return r.text[start:r.at], err
}

// skip reads any value within so many others.
func (r *Reader) skip(depth int) error {
	if depth > deepest {
		return fmt.Errorf("more than %d lists and objects within each other", deepest)
	}
	within := func() error { return r.skip(depth + 1) }
	switch r.Peek() {
	case '{':
		return r.Object(func(string) error { return within() })
	case '[':
		return r.Array(within)
	case '"':
		_, err := r.quoted()
		return err
	case 't', 'f', 'n':
		return r.name()
	}
	_, err := r.Number()
	return err
}

// name reads true, false or null.
func (r *Reader) name() error {
	for _, s := range []string{"true", "false", "null"} {
		if rest := r.text[r.at:]; len(rest) >= len(s) && rest[:len(s)] == s {
			r.at += len(s)
			return nil
		}
	}
	return r.wants("a value")
}

// Null reads null, and reports whether it was there.
func (r *Reader) Null() (bool, error) {
	if r.Peek() != 'n' {
		return false, nil
	}
	return true, r.name()
}

// quoted reads a string and returns it with its quotes and escapes.
func (r *Reader) quoted() (string, error) {
	if r.Peek() != '"' {
		return "", r.wants("a text")
	}
	start := r.at
	for i := start + 1; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.at = i + 1
			return r.text[start:r.at], nil
		case c < ' ':
			r.at = i
			return "", r.wants("a character of a text")
		case c == '\\':
			n := escape(r.text[i:])
			if n == 0 {
				r.at = i
				return "", r.wants("an escape such as \\n or \\u0041")
			}
			i += n - 1
		}
	}
	r.at = len(r.text)
	return "", r.wants(`the '"' that ends a text`)
}

// escape returns the length of the escape that s begins with, 0 where it is none.
func escape(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if unit(s) >= 0 {
			return 6
		}
	}
	return 0
}

// String reads a string.
func (r *Reader) String() (string, error) {
	quoted, err := r.quoted()
	if err != nil {
		return "", err
	}
	return unescaped(quoted[1 : len(quoted)-1]), nil
}

// unescaped is the text that s, whose escapes are valid, stands for. Half a surrogate pair is U+FFFD, as in
// encoding/json.
func unescaped(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for ; i >= 0; i = strings.IndexByte(s, '\\') {
		b = append(b, s[:i]...)
		switch c := s[i+1]; c {
		case 'b', 'f', 'n', 'r', 't':
			b = append(b, "\b\f\n\r\t"[strings.IndexByte("bfnrt", c)])
		case 'u':
			r := unit(s[i:])
			if utf16.IsSurrogate(r) {
				pair := utf16.DecodeRune(r, unit(s[i+6:]))
				if r = pair; pair != utf8.RuneError {
					i += 6
				}
			}
			b = utf8.AppendRune(b, r)
			i += 4
		default:
			b = append(b, c)
		}
		s = s[i+2:]
	}
	return string(append(b, s...))
}

// unit is the number of an escape \u0041 that s begins with, -1 where it begins otherwise.
func unit(s string) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n := rune(0)
	for _, c := range []byte(s[2:6]) {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c|' ' >= 'a' && c|' ' <= 'f':
			n = n<<4 | rune(c|' '-'a'+10)
		default:
			return -1
		}
	}
	return n
}

// Number reads a number and returns its text.
func (r *Reader) Number() (string, error) {
	r.Peek()
	start, i := r.at, r.at
	digits := func() bool {
		from := i
		for i < len(r.text) && r.text[i] >= '0' && r.text[i] <= '9' {
			i++
		}
		return i > from
	}
	is := func(signs string) bool {
		for _, c := range []byte(signs) {
			if i < len(r.text) && r.text[i] == c {
				i++
				return true
			}
		}
		return false
	}
	is("-")
	whole := is("0") || digits()
	if whole && is(".") {
		whole = digits()
	}
	if whole && is("eE") {
		is("+-")
		whole = digits()
	}
	if !whole {
		if i > start {
			r.at = i
			return "", r.wants("a digit")
		}
		return "", r.wants("a value")
	}
	r.at = i
	return r.text[start:i], nil
}
