package main

import "context"

// untilCancelled returns what work returns, or the error of ctx as soon as it is cancelled. Work
// that only reads is then left to end with the process, so that a file list, a vocabulary or a
// slow disk does not keep somebody waiting who has pressed Ctrl-C.
func untilCancelled[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := work()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
