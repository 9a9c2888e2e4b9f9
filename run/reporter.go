package run

import (
	"fmt"
	"io"
	"time"

	"github.com/geoalign/geoalign/train"
)

// Reporter shows how a run goes on. Its methods are called one after another.
type Reporter interface {
	// Say tells a line, which has no line feed.
	Say(format string, args ...any)
	// Steps announces the steps that follow: start were made before, total is the number
	// of all of them, 0 where it is not known, and limit the time of the run, 0 for none.
	// The hook sees every step.
	Steps(start, total int, limit time.Duration) train.Hook
	// Phase tells how much of a phase of an evaluation is done.
	Phase(name string, done, total int)
	// PhasesDone ends what Phase shows.
	PhasesDone()
}

// lines is a Reporter that writes plain lines.
type lines struct {
	out io.Writer
}

// Lines returns a Reporter that writes plain lines to out, one every ten seconds of
// training; with nil it is silent.
func Lines(out io.Writer) Reporter { return &lines{out: out} }

func (l *lines) Say(format string, args ...any) {
	if l.out != nil {
		fmt.Fprintf(l.out, format+"\n", args...)
	}
}

func (l *lines) Steps(start, total int, limit time.Duration) train.Hook {
	out := l.out
	if out == nil {
		out = io.Discard
	}
	return train.NewProgress(train.ProgressConfig{Out: out, Quiet: l.out == nil, Start: start, Total: total, Limit: limit}).Hook()
}

func (l *lines) Phase(string, int, int) {}

func (l *lines) PhasesDone() {}
