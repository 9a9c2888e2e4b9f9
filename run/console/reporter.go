package console

import (
	"context"
	"fmt"
	"io"
	"strings"
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

// Phases returns what tells a reporter of phases, and what ends them where there was any.
func Phases(report Reporter) (progress func(phase string, done, of int), end func()) {
	shown := false
	return func(phase string, done, of int) {
			shown = true
			report.Phase(phase, done, of)
		}, func() {
			if shown {
				report.PhasesDone()
			}
		}
}

// lineEvery is the time between two lines about steps.
const lineEvery = 10 * time.Second

// lines is a Reporter that writes plain lines.
type lines struct{ out io.Writer }

// Lines returns a Reporter that writes plain lines to out: of training one every ten
// seconds, and for every step with an evaluation or without an update. With nil it is silent.
func Lines(out io.Writer) Reporter { return lines{out} }

func (l lines) Say(format string, args ...any) {
	if l.out != nil {
		fmt.Fprintf(l.out, strings.TrimSuffix(format, "\n")+"\n", args...)
	}
}

func (l lines) Steps(_, _ int, limit time.Duration) train.Hook {
	meter, first, last := Meter{Limit: limit}, true, time.Time{}
	return train.Hook{
		Name: "progress", Stage: train.StageLog,
		After: func(_ context.Context, e *train.Event) error {
			meter.See(e)
			if first || final(e) || e.Evaluated || e.Skipped || e.Now.Sub(last) >= lineEvery {
				first, last = false, e.Now
				of := ""
				if e.Total > 0 {
					of = fmt.Sprintf("/%d", e.Total)
				}
				l.Say("step %d%s  %s", e.Step, of, strings.Join(meter.Fields(e), "  "))
			}
			return nil
		},
		Rewind: func(step int) error { l.Say("went back to step %d", step); return nil },
	}
}

func (l lines) Phase(string, int, int) {}

func (l lines) PhasesDone() {}
