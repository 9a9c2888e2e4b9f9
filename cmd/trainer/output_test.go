package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// full is a file on a device that has room for so many bytes.
type full struct{ room int }

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return max(0, len(p)+f.room), errFull
	}
	return len(p), nil
}

// TestResultThatCannotBeWritten: every command fails with a message where its result does not
// arrive, whatever it has done.
func TestResultThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "run")
	must(t, exitDone, tinyArgs(out, "--max-steps", "2", "--quiet")...)
	quickPeak(t)
	file, texts := matrix(t, three), write(t, "texts.txt", "a red circle\n")
	data := []string{"--set", "model.image.size=32", "--set", "data.scenes.val_samples=4", "--set", "data.scenes.test_samples=4", "--set", "data.vocab_size=64"}
	rows := [][]string{
		{"--help"},
		{"--version"},
		{"train", "--help"},
		tinyArgs(out, "--max-steps", "2", "--quiet"), // only evaluates
		tinyArgs(out, "--dry-run", "--resume", "never", "--quiet"),
		{"finetune", "--checkpoint", out, "--dry-run", "--quiet"},
		{"eval", "--checkpoint", out},
		{"embed", "--checkpoint", out, "--out", filepath.Join(dir, "e")},
		{"embed", "--checkpoint", out, "--texts", texts, "--out", filepath.Join(dir, "t")},
		{"search", filepath.Join(dir, "e"), "--row", "0"}, // what the embed above wrote
		{"search", filepath.Join(dir, "e"), "--row", "0", "--json"},
		{"report", out, "--no-model"},
		{"inspect", out},
		{"inspect", out, "--verify"},
		{"inspect", out, "--print-config"},
		{"validate", "--quiet"},
		{"validate", "--print", "--quiet"},
		{"validate", "--json"},
		{"bench", "--config", tiny, "--steps", "1", "--warmup", "0"},
		{"doctor", "--backend", "builtin"},
		{"ablate", "--config", file, "--out", filepath.Join(dir, "ablation"), "--dry-run"},
		append([]string{"data", "stats"}, data...),
		append([]string{"data", "check", "--captions-only"}, data...),
		append([]string{"data", "preview", "--images", "1", "--out", filepath.Join(dir, "p.png")}, data...),
		append([]string{"data", "bench", "--seconds", "0.01", "--workers", "1"}, data...),
	}
	for _, args := range rows {
		var stderr bytes.Buffer
		code := execute(t.Context(), args, &full{}, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), "trainer: the result could not be written: no space left on device\n") {
			t.Errorf("%q: code %d, stderr %q", args, code, stderr.String())
		}
	}
	var stderr bytes.Buffer
	if code := execute(t.Context(), []string{"--help"}, &full{room: 100}, &stderr); code != exitFailed {
		t.Errorf("a result of which a part was written: code %d", code)
	}
}

// A message that cannot be written is not a reason to fail.
func TestMessageThatCannotBeWritten(t *testing.T) {
	var stdout bytes.Buffer
	if code := execute(t.Context(), []string{"validate"}, &stdout, &full{}); code != exitDone || stdout.String() != "defaults: ok\n" {
		t.Errorf("code %d, stdout %q", code, stdout.String())
	}
}

// closedPipe gives a stream whose reader has ended, and a context that is cancelled when that is found out, as in main.
func closedPipe(t *testing.T) (context.Context, io.Writer) {
	t.Helper()
	r, w := check.Get2(os.Pipe())(t)
	t.Cleanup(func() { w.Close() })
	r.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	t.Cleanup(func() { stop(nil) })
	return ctx, outlet(w, func() { stop(errUnread) })
}

// TestNobodyReads: where the reader of its result has ended a command fails quietly, and an error of its own is
// told all the same.
func TestNobodyReads(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a closed pipe has another error")
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "run")
	must(t, exitDone, tinyArgs(out, "--max-steps", "2", "--quiet")...)
	data := []string{"--set", "model.image.size=32", "--set", "data.scenes.val_samples=4", "--set", "data.scenes.test_samples=4", "--set", "data.vocab_size=64"}
	for _, args := range [][]string{
		{"--help"},
		{"validate", "--quiet"},
		{"validate", "--json"},
		{"eval", "--checkpoint", out, "--quiet"},
		{"eval", "--checkpoint", out, "--json", "--quiet"},
		tinyArgs(out, "--max-steps", "2", "--quiet"), // only evaluates
		tinyArgs(filepath.Join(dir, "new"), "--max-steps", "1", "--quiet"),
		{"finetune", "--checkpoint", out, "--max-steps", "1", "--quiet", "--out", filepath.Join(dir, "tuned")},
		append([]string{"data", "stats"}, data...),
	} {
		var stderr bytes.Buffer
		ctx, stdout := closedPipe(t)
		if code := execute(ctx, args, stdout, &stderr); code != exitFailed || stderr.Len() > 0 {
			t.Errorf("%q: code %d, stderr %q", args, code, stderr.String())
		}
	}
	for _, name := range []string{"new", "tuned"} {
		if step := newest(t, filepath.Join(dir, name)); step != 1 {
			t.Errorf("%s is saved at step %d", name, step)
		}
	}
	var stderr bytes.Buffer
	ctx, stdout := closedPipe(t)
	if code := execute(ctx, append([]string{"data", "check", "--quiet"}, twoCaptions(t)...), stdout, &stderr); code != exitFailed || !strings.Contains(stderr.String(), errGrave.Error()) || strings.Contains(stderr.String(), "pipe") {
		t.Errorf("an error of its own: code %d, stderr %q", code, stderr.String())
	}
}

// TestOutputShowsControls: a terminal gets no character of others that it obeys, however the
// writes are cut.
func TestOutputShowsControls(t *testing.T) {
	const text = "a\x1b[2Jb\u009bc \u202e\xff é 日本\tz\n\x9b"
	const want = `a\u001b[2Jb\u009bc \u202e\xff é 日本` + "\tz\n" + `\x9b`
	for size := 1; size <= len(text); size++ {
		var b bytes.Buffer
		o := &output{file: &b}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if m, err := io.WriteString(o, rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if err := o.finish(nil); err != nil || b.String() != want {
			t.Errorf("writes of %d bytes: %v, got %q, want %q", size, err, b.String(), want)
		}
	}
}

// Names of files, values and captions reach the terminal in that form.
func TestForeignTextIsShown(t *testing.T) {
	const red = "\x1b[31m"
	for _, args := range [][]string{
		{"validate", "--config", red + ".toml"},
		{"validate", "--set", "data.kind=" + red},
		{"validate", "--set", red + "=1"},
		{red},
		{"inspect", red},
		{"validate", "--json", "--set", "run.name=" + red},
		{"validate", "--print", "--set", "run.name=" + red},
	} {
		_, stdout, stderr := trainer(t, args...)
		if strings.Contains(stdout+stderr, "\x1b") || !strings.Contains(stdout+stderr, "[31m") {
			t.Errorf("%q: stdout %q, stderr %q", args, stdout, stderr)
		}
	}
}

// TestLongLines: a line of messages is shown in part where no person wrote one of its length, and results as they are.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 3*longestMessage)
	var messages, results strings.Builder
	for w, most := range map[*strings.Builder]int{&messages: longestMessage, &results: 0} {
		fmt.Fprintf(&output{file: w, most: most}, "one\n%s\nthree\n", long)
	}
	if got := messages.String(); !strings.HasPrefix(got, "one\nxxx") || !strings.HasSuffix(got, "xxx\nthree\n") || !strings.Contains(got, "x ... [16,385 bytes] ... x") || len(got) > longestMessage+100 {
		t.Errorf("%d bytes: %.200q", len(got), got)
	}
	if got := results.String(); got != "one\n"+long+"\nthree\n" {
		t.Errorf("%d bytes", len(got))
	}
}
