package console

import "fmt"

// ArgumentError marks an error of what was asked for, such as a task that a system lacks, as opposed to one of
// the work.
type ArgumentError struct{ Err error }

// Argument returns an *ArgumentError with the text of fmt.Errorf.
func Argument(format string, args ...any) error { return &ArgumentError{fmt.Errorf(format, args...)} }

// Error is the text of the error within.
func (e *ArgumentError) Error() string { return e.Err.Error() }

// Unwrap returns the error within.
func (e *ArgumentError) Unwrap() error { return e.Err }
