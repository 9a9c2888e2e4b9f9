package torch

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Instructions of pickles of the versions 0 to 2, as Python 2 wrote texts, numbers and the containers of them.
const (
	textInt        = 'I'
	textLong       = 'L'
	textFloat      = 'F'
	textString     = 'S'
	textUnicode    = 'V'
	binString      = 'T'
	shortBinString = 'U'
	listOp         = 'l'
	dictOp         = 'd'
	textPut        = 'p'
	textGet        = 'g'
)

// Plain returns what a pickle of dictionaries, lists, tuples, texts and numbers makes, of any version of Python 2 or 3:
// map[string]any, []any, string, int64, float64, bool and nil. It refuses other objects, keys of dictionaries that are
// no texts, and bytes behind the pickle's end.
func Plain(text []byte) (any, error) {
	m := newMachine(text)
	m.plain = true
	v, err := m.run()
	if err != nil {
		return nil, err
	}
	if m.at < len(text) {
		return nil, fmt.Errorf("%d bytes follow the end of the pickle", len(text)-m.at)
	}
	// Every value takes a byte of the pickle at least, unless containers are in it twice, or in themselves.
	left := len(text)
	return plainValue(v, &left, 0)
}

// plainValue is a value of the machine as one of Go. left is how many values there may be.
func plainValue(v any, left *int, depth int) (any, error) {
	if *left--; *left < 0 || depth > maxDepth {
		return nil, fmt.Errorf("a list or dictionary is in it again and again, or more than %d in each other", maxDepth)
	}
	items := func(in []any) (any, error) {
		out := make([]any, len(in))
		for i, x := range in {
			var err error
			if out[i], err = plainValue(x, left, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch x := v.(type) {
	case nil, string, int64, float64, bool:
		return x, nil
	case *list:
		return items(x.items)
	case tuple:
		return items(x)
	case *dict:
		out := make(map[string]any, len(x.keys))
		for i, key := range x.keys {
			name, ok := key.(string)
			if !ok {
				return nil, fmt.Errorf("a key of a dictionary is %v, no text", key)
			}
			var err error
			if out[name], err = plainValue(x.values[i], left, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, errors.New("it holds an object other than dictionaries, lists, texts and numbers")
}

// doPlain runs an instruction that pickles of tensors do not have.
func (m *machine) doPlain(op byte) error {
	switch op {
	case textInt, textLong, textFloat, textString, textUnicode:
		line, err := m.line()
		if err != nil {
			return err
		}
		return m.push(plainText(op, line))
	case binString, shortBinString:
		size := 4
		if op == shortBinString {
			size = 1
		}
		b, err := m.bytes(size)
		if err != nil {
			return err
		}
		n := 0
		for i, v := range b {
			n |= int(v) << (8 * i)
		}
		if b, err = m.bytes(n); err != nil {
			return err
		}
		return m.push(string(b), nil)
	case listOp:
		items, err := m.marked()
		return m.push(&list{items: items}, err)
	case dictOp:
		items, err := m.marked()
		if err == nil && len(items)%2 != 0 {
			err = errors.New("a key of a dictionary has no value")
		}
		d := newDict()
		for i := 0; i < len(items) && err == nil; i += 2 {
			err = d.set(items[i], items[i+1])
		}
		return m.push(d, err)
	case textPut, textGet:
		line, err := m.line()
		if err != nil {
			return err
		}
		key, err := strconv.ParseUint(line, 10, 32)
		if err != nil {
			return fmt.Errorf("%.40q is not the number of a value", line)
		}
		return m.remembered(op == textGet, uint32(key))
	}
	return errors.New("it is none that dictionaries, lists, texts and numbers are written with")
}

// line reads to the end of a line.
func (m *machine) line() (string, error) {
	for i := m.at; i < len(m.text); i++ {
		if m.text[i] == '\n' {
			s := string(m.text[m.at:i])
			m.at = i + 1
			return s, nil
		}
	}
	return "", errShort
}

// plainText is the value of a line.
func plainText(op byte, s string) (any, error) {
	switch op {
	case textInt, textLong:
		if op == textInt && (s == "00" || s == "01") {
			return s == "01", nil
		}
		if n := len(s); op == textLong && n > 0 && s[n-1] == 'L' {
			s = s[:n-1]
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.40q is not a whole number of 64 bits", s)
		}
		return v, nil
	case textFloat:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%.40q is not a number", s)
		}
		return v, nil
	case textUnicode:
		return unescaped(s, false)
	}
	if n := len(s); n < 2 || s[0] != s[n-1] || s[0] != '\'' && s[0] != '"' {
		return nil, fmt.Errorf("%.40q is not a text in quotes", s)
	}
	return unescaped(s[1:len(s)-1], true)
}

// unescaped is a text without Python's escapes: all of them in the repr of a string, \uXXXX and \UXXXXXXXX alone in
// raw-unicode-escape, whose other bytes are Latin-1.
func unescaped(s string, repr bool) (string, error) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			if repr {
				out = append(out, s[i])
			} else {
				out = utf8.AppendRune(out, rune(s[i]))
			}
			continue
		}
		digits := map[byte]int{'u': 4, 'U': 8}[s[i+1]]
		if repr {
			digits = map[byte]int{'x': 2}[s[i+1]]
		}
		if digits == 0 {
			plain, ok := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"'}[s[i+1]]
			if !repr || !ok {
				out = append(out, '\\')
				continue
			}
			out = append(out, plain)
			i++
			continue
		}
		if i+2+digits > len(s) {
			return "", fmt.Errorf("the escape %.10q is cut off", s[i:])
		}
		v, err := strconv.ParseUint(s[i+2:i+2+digits], 16, 32)
		if err != nil {
			return "", fmt.Errorf("%.10q is not an escape", s[i:])
		}
		if repr {
			out = append(out, byte(v))
		} else {
			out = utf8.AppendRune(out, rune(v))
		}
		i += 1 + digits
	}
	return string(out), nil
}
