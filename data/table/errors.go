package table

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/words"
)

// LineError is a line of a text file that cannot be used.
type LineError struct {
	File string
	Line int // from 1
	Err  error
}

// Error names the file and the line.
func (e *LineError) Error() string {
	return fmt.Sprintf("data: %s: line %d: %v", e.File, e.Line, words.Short(e.Err))
}

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// RecordError is an entry of a data file that cannot be used.
type RecordError struct {
	File  string
	Index int // of the entry, from 0; -1: the file as a whole
	Err   error
}

// Error names the file and the entry.
func (e *RecordError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("data: %s: %v", e.File, words.Short(e.Err))
	}
	return fmt.Sprintf("data: %s: entry %d: %v", e.File, e.Index, words.Short(e.Err))
}

// Unwrap returns the reason.
func (e *RecordError) Unwrap() error { return e.Err }

// Whole is the *RecordError of a file as a whole.
func Whole(file string, err error) error { return &RecordError{File: file, Index: -1, Err: err} }
