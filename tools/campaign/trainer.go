package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// patience is the time after which a command counts as hanging. Tests shorten it.
var patience = 5 * time.Minute

// lingering is how long what a command has started may hold its output after its end.
const lingering = 10 * time.Second

// build makes the program.
func (c *campaign) build() error {
	cmd := exec.Command("go", "build", "-o", c.bin, "github.com/geoalign/geoalign/cmd/trainer")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the trainer: %w\n%s", err, out)
	}
	return nil
}

// train is the command line that trains into the folder "run" of the working folder. The
// folder has one name for all runs, so that their configurations are the same bytes.
func (c *campaign) train(more ...string) []string {
	return append([]string{"train", "--config", c.config, "--out", "run"}, more...)
}

// command returns the program in the working folder dir, and what it will have printed.
func (c *campaign) command(ctx context.Context, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, c.bin, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, lingering
	return cmd, &out
}

// start is command, or ranked where a run has several ranks.
func (c *campaign) start(ctx context.Context, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	if c.ranks > 1 {
		return c.ranked(ctx, dir, args...)
	}
	return c.command(ctx, dir, args...)
}

// trainer runs the program to its end in the working folder dir. Any end but an exit code is an
// error: a hang, a signal, a crash.
func (c *campaign) trainer(dir string, args ...string) (code int, out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd, b := c.start(ctx, dir, args...)
	err = cmd.Run()
	out = b.String()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, out, err
	}
	code = cmd.ProcessState.ExitCode()
	if code < 0 || crashed(out) {
		return code, out, fmt.Errorf("%q ended with %v:\n%s", args, cmd.ProcessState, tail(out))
	}
	return code, out, nil
}

// done is trainer for a command line that has to succeed.
func (c *campaign) done(dir string, args ...string) (out string, err error) {
	code, out, err := c.trainer(dir, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%q: exit code %d:\n%s", args, code, tail(out))
	}
	return out, err
}

// crashed reports whether a program printed a Go panic.
func crashed(out string) bool {
	return strings.Contains(out, "goroutine ") &&
		(strings.Contains(out, "panic: ") || strings.Contains(out, "fatal error: "))
}

// tail returns the end of what a program printed.
func tail(out string) string { return out[max(0, len(out)-2000):] }
