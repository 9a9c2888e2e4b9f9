// Package strictjson refuses what encoding/json passes over in silence.
package strictjson

import (
	"fmt"
	"unicode/utf8"
)

// Check returns an error where b, which is valid JSON, has bytes that are not UTF-8, or an
// object with the same key twice, of which a reader would take one and drop the other.
func Check(b []byte) error {
	if at := invalid(b); at >= 0 {
		return notUTF8(b, at)
	}
	var objects []map[string]bool // keys of the objects around the place, nil for a list
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{':
			objects = append(objects, map[string]bool{})
		case '[':
			objects = append(objects, nil)
		case '}', ']':
			objects = objects[:len(objects)-1]
		case '"':
			text := stringAt(b, i)
			i += len(text) - 1
			if !isKey(b[i+1:]) {
				continue
			}
			keys := objects[len(objects)-1]
			if keys[string(text)] {
				return fmt.Errorf("key %s is there twice: leave one of them out", text)
			}
			keys[string(text)] = true
		}
	}
	return nil
}

// notUTF8 is the error of the byte at a place.
func notUTF8(b []byte, at int) error {
	return fmt.Errorf("byte 0x%02x at byte %d is not UTF-8: save the file as UTF-8 text", b[at], at+1)
}

// invalid returns the index of the first byte that is not UTF-8, -1 where there is none.
func invalid(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// stringAt returns the string that begins at b[i], with its quotes.
func stringAt(b []byte, i int) []byte {
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			return b[i : j+1]
		}
	}
	return b[i:]
}

// isKey reports whether a string that stands before rest is a key.
func isKey(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == ':'
		}
	}
	return false
}
