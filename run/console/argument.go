package console

// ArgumentError marks an error of what was asked for, such as a task that a system has
// not, as opposed to one of the work.
type ArgumentError struct{ Err error }

// Error is the text of the error within.
func (e *ArgumentError) Error() string { return e.Err.Error() }

// Unwrap returns the error within.
func (e *ArgumentError) Unwrap() error { return e.Err }
