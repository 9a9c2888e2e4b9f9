package model

import (
	"errors"
	"testing"
	"time"
)

// A save waits for a rebuild that is in progress, and a rebuild that failed is not a state.
func TestSaveWaitsForARebuild(t *testing.T) {
	g, _ := newTestGraphs(t, 4, 2)
	failed := errors.New("failed")
	done := make(chan error, 1)
	g.Pending = &Pending{done: done}
	ended := false
	go func() {
		time.Sleep(10 * time.Millisecond)
		ended = true
		done <- failed
	}()
	if err := g.PrepareSave(); !errors.Is(err, failed) || !ended {
		t.Errorf("got %v before the end of the rebuild: %t", err, !ended)
	}
	g.Pending = nil // close would report the error
}
