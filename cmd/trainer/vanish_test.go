package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/train/runlog"
)

// Files vanish while a run trains. What it has read already it does not miss, a bad sample is
// left out, and without what it needs the run ends with an error that says what and what to do.
func TestFilesVanish(t *testing.T) {
	rows := []struct {
		name  string
		what  func(data, out string) string // goes while the run trains
		set   []string
		want  int
		texts []string
	}{
		{"an image", func(data, _ string) string { return filepath.Join(data, "train", "003.png") }, []string{"data.max_bad_share=0.5"},
			exitInterrupted, []string{"bad sample, skipped: ", "003.png", "trainer data check"}},
		{"all images", func(data, _ string) string { return filepath.Join(data, "train") }, nil,
			exitFailed, []string{"samples are bad, more than data.max_bad_share", "no such file", "trainer data check"}},
		{"latest", func(_, out string) string { return filepath.Join(out, runlog.CheckpointsDir, "latest") }, nil, exitInterrupted, nil},
		{"the checkpoints", func(_, out string) string { return filepath.Join(out, runlog.CheckpointsDir) }, nil,
			exitFailed, []string{"checkpoint: save step ", "no such file"}},
		{"the run folder", func(_, out string) string { return out }, nil, exitFailed, []string{"no such file"}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			data, flags := photoData(t)
			out := filepath.Join(t.TempDir(), "run")
			args := append(tinyArgs(out, "--max-steps", "1000000", "--set", "schedule.kind=constant", "--set", "train.eval_every_steps=0", "--set", "train.log_every_steps=1"), flags...)
			args = append(args, sets(r.set...)...)
			var stderr bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan int, 1)
			go func() { ended <- execute(ctx, args, io.Discard, &stderr) }()
			// to waits until the run has logged a step or ended by itself.
			to := func(step int) (code int, over bool) {
				for lastRow(out) < step {
					select {
					case code := <-ended:
						return code, true
					case <-time.After(time.Millisecond):
					}
				}
				return 0, false
			}
			if code, over := to(5); over {
				t.Fatalf("the run ended with %d: %s", code, stderr.String())
			}
			for os.RemoveAll(r.what(data, out)) != nil { // a save is putting files there
			}
			code, over := 0, false
			if r.want == exitInterrupted {
				code, over = to(lastRow(out) + 12) // 96 samples of 16 images, and three saves
				cancel()
			}
			if !over {
				code = <-ended
			}
			cancel()
			if code != r.want {
				t.Errorf("code %d, want %d: %s", code, r.want, stderr.String())
			}
			contains(t, stderr.String(), r.texts...)
			if strings.Contains(stderr.String(), "goroutine ") {
				t.Errorf("a crash instead of an error: %s", stderr.String())
			}
		})
	}
}
