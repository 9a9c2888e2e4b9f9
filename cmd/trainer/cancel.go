package main

import (
	"context"

	"github.com/spf13/cobra"
)

// shown is untilCancelled of work that says how far it is, which a bar shows.
func shown[T any](c *cobra.Command, out outputFlags, work func(ctx context.Context, progress func(phase string, done, of int)) (T, error)) (T, error) {
	bar := newPhaseBar(c.ErrOrStderr(), out.quiet || out.json)
	defer bar.done()
	return untilCancelled(c.Context(), func() (T, error) {
		return work(c.Context(), func(phase string, done, of int) {
			if c.Context().Err() == nil { // else nobody waits for the rest
				bar.show(phase, done, of)
			}
		})
	})
}

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
