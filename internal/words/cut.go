package words

import (
	"strings"
	"unicode/utf8"
)

// Lengths of others' text in messages, in bytes.
const (
	shown = 300  // of a name, a key or a value within a message
	short = 2000 // of a message that quotes any
)

// Cut returns text of at most about most bytes: the middle of a longer one is left out, and says how much that is.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := most*2/3, len(text)-most/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return strings.Clone(text[:head] + " ... [" + Count(tail-head, "byte") + "] ... " + text[tail:])
}

// Shown returns a name, a key or a value of a file as a message quotes it: cut, and Inline.
func Shown(text string) string { return Inline(Cut(text, shown)) }

// Short returns err with a message that is cut: an error that quotes what a file has may be as long as the file. What
// it wraps stays; nil is nil.
func Short(err error) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	if len(message) <= short {
		return err
	}
	return &shortError{Cut(message, short), err}
}

type shortError struct {
	message string
	err     error
}

func (e *shortError) Error() string { return e.message }
func (e *shortError) Unwrap() error { return e.err }
