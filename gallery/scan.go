package gallery

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// scanner reads some keys of lines as fieldsOf does, of equal ones the last, without making values of the others. It is
// for one goroutine.
type scanner struct {
	keys   map[string]int // of the columns
	name   []byte         // JSON of the name of a line, nil without one
	column [][]byte       // (keys) JSON of the values of a line, nil where it lacks the key
	own    []bool         // (keys) the line has the key itself, and not in its payload
	shared map[string]any // values that were read, by their JSON
}

// sharedValues is how many values of columns lie in memory once.
const sharedValues = 1 << 12

func newScanner(keys []string) *scanner {
	s := &scanner{keys: map[string]int{}, column: make([][]byte, len(keys)), own: make([]bool, len(keys)),
		shared: map[string]any{}}
	for k, key := range keys {
		s.keys[key] = k
	}
	return s
}

// scan hands over what the line of row i has under each key it has.
func (s *scanner) scan(i int, line []byte, take func(k int, v any)) error {
	var payload []byte
	s.name = nil
	clear(s.column)
	clear(s.own)
	end := members(line, skipSpace(line, 0), 0, func(key, value []byte) {
		switch string(key) {
		case "payload":
			payload = value
			return
		case "name":
			s.name = value
		}
		if k, wanted := s.keys[string(key)]; wanted {
			s.column[k], s.own[k] = value, true
		}
	})
	if end < 0 || skipSpace(line, end) < len(line) {
		var own map[string]any
		if err := json.Unmarshal(line, &own); err != nil { // which says what is wrong
			return err
		}
		return errors.New("it is not an object")
	}
	if len(payload) > 0 && payload[0] == '{' {
		members(payload, 0, 0, func(key, value []byte) {
			if k, wanted := s.keys[string(key)]; wanted && !s.own[k] {
				s.column[k] = value
			}
		})
	}
	for key, k := range s.keys {
		switch {
		case key == "row":
			take(k, float64(i))
		case s.column[k] != nil:
			v, err := s.value(s.column[k])
			if err != nil {
				return err
			}
			take(k, v)
		case key == "id":
			name := ""
			if len(s.name) > 0 && s.name[0] == '"' {
				v, err := s.value(s.name)
				if err != nil {
					return err
				}
				name = v.(string)
			}
			take(k, idOf(i, "", name, nil))
		}
	}
	return nil
}

// value is what JSON that is valid stands for, as encoding/json has it.
func (s *scanner) value(b []byte) (v any, err error) {
	if v, there := s.shared[string(b)]; there {
		return v, nil
	}
	switch {
	case b[0] == '"':
		v = string(unquoted(b))
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		v, err = strconv.ParseFloat(string(b), 64)
	default:
		err = json.Unmarshal(b, &v)
	}
	if err == nil && plain(v) && len(s.shared) < sharedValues {
		s.shared[string(b)] = v
	}
	return v, err
}

// The functions below return the end of a part of JSON that begins at b[i], -1 where it is not valid.

// maxNesting is how deep encoding/json reads objects and lists within each other.
const maxNesting = 10_000

// members is the end of an object within depth others. It calls f with each key, without its quotes, and the JSON of
// its value; nil: nobody.
func members(b []byte, i, depth int, f func(key, value []byte)) int {
	if at(b, i) != '{' || depth >= maxNesting {
		return -1
	}
	if i = skipSpace(b, i+1); at(b, i) == '}' {
		return i + 1
	}
	for {
		end := skipString(b, i)
		if end < 0 {
			return -1
		}
		key := b[i:end]
		if i = skipSpace(b, end); at(b, i) != ':' {
			return -1
		}
		i = skipSpace(b, i+1)
		if end = skipValue(b, i, depth+1); end < 0 {
			return -1
		}
		if f != nil {
			f(unquoted(key), b[i:end])
		}
		switch i = skipSpace(b, end); at(b, i) {
		case ',':
			i = skipSpace(b, i+1)
		case '}':
			return i + 1
		default:
			return -1
		}
	}
}

// unquoted is the text of a string that is valid JSON.
func unquoted(b []byte) []byte {
	inner := b[1 : len(b)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner
	}
	var text string
	_ = json.Unmarshal(b, &text)
	return []byte(text)
}

func skipValue(b []byte, i, depth int) int {
	word := ""
	switch at(b, i) {
	case '"':
		return skipString(b, i)
	case '{':
		return members(b, i, depth, nil)
	case '[':
		return skipList(b, i, depth)
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return skipNumber(b, i)
	}
	if !bytes.HasPrefix(b[i:], []byte(word)) {
		return -1
	}
	return i + len(word)
}

func skipList(b []byte, i, depth int) int {
	if depth >= maxNesting {
		return -1
	}
	if i = skipSpace(b, i+1); at(b, i) == ']' {
		return i + 1
	}
	for {
		end := skipValue(b, i, depth+1)
		if end < 0 {
			return -1
		}
		switch i = skipSpace(b, end); at(b, i) {
		case ',':
			i = skipSpace(b, i+1)
		case ']':
			return i + 1
		default:
			return -1
		}
	}
}

func skipString(b []byte, i int) int {
	if at(b, i) != '"' {
		return -1
	}
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			i++
			if at(b, i) != 'u' {
				if bytes.IndexByte([]byte(`"\/bfnrt`), at(b, i)) < 0 {
					return -1
				}
				continue
			}
			if i+4 >= len(b) || len(bytes.Trim(b[i+1:i+5], "0123456789abcdefABCDEF")) > 0 {
				return -1
			}
			i += 4
		}
	}
	return -1
}

func skipNumber(b []byte, i int) int {
	if at(b, i) == '-' {
		i++
	}
	start := i
	if i = skipDigits(b, i); i == start || b[start] == '0' && i > start+1 {
		return -1
	}
	if at(b, i) == '.' {
		start = i + 1
		if i = skipDigits(b, start); i == start {
			return -1
		}
	}
	if at(b, i) == 'e' || at(b, i) == 'E' {
		if i++; at(b, i) == '+' || at(b, i) == '-' {
			i++
		}
		start = i
		if i = skipDigits(b, i); i == start {
			return -1
		}
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for at(b, i) >= '0' && at(b, i) <= '9' {
		i++
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for at(b, i) == ' ' || at(b, i) == '\t' || at(b, i) == '\n' || at(b, i) == '\r' {
		i++
	}
	return i
}

// at is b[i], 0 beyond its end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}
