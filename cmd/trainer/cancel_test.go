package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestUntilCancelled: work that never ends does not keep the caller.
func TestUntilCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started, end := make(chan bool), make(chan bool)
	go func() { <-started; cancel() }()
	n, err := untilCancelled(ctx, func() (int, error) { close(started); <-end; return 1, nil })
	close(end)
	if n != 0 || err != context.Canceled {
		t.Errorf("cancelled: got %d, %v", n, err)
	}
	if n, err := untilCancelled(t.Context(), func() (int, error) { return 2, errGrave }); n != 2 || err != errGrave {
		t.Errorf("done: got %d, %v", n, err)
	}
}

// TestDataCommandsAnswerInterrupts: each ends with the code of an interruption and prints
// nothing.
func TestDataCommandsAnswerInterrupts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sheet := filepath.Join(t.TempDir(), "sheet.png")
	for _, args := range [][]string{{"stats"}, {"check"}, {"preview", "--out", sheet}, {"bench"}, {"stats", "--json"}} {
		var stdout, stderr bytes.Buffer
		if code := execute(ctx, append([]string{"data"}, args...), &stdout, &stderr); code != exitInterrupted || stdout.String() != "" || !strings.Contains(stderr.String(), "trainer: interrupted\n") {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, stdout.String(), stderr.String())
		}
	}
	if names := names(t, filepath.Dir(sheet)); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}
