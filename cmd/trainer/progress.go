package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/train"
)

// newReporter returns what shows a run on out: a bar on a terminal, else lines.
func newReporter(out io.Writer, quiet bool) run.Reporter {
	switch {
	case quiet:
		return run.Lines(nil)
	case isTerminal(out):
		return &terminal{out: out}
	}
	return run.Lines(out)
}

// terminal shows a run on a terminal: a bar that is redrawn, with the numbers of the step
// behind it, of which the last are left out where the terminal is narrow.
type terminal struct {
	out    io.Writer
	bar    *progressbar.ProgressBar // nil before the steps
	meter  run.Meter
	steps  int       // of this session
	drawn  time.Time // the bar
	phases *phaseBar // nil before the first phase
}

// barWidth is the length of the bar proper; redraw the least time between two states of it.
const (
	barWidth = 12
	redraw   = 100 * time.Millisecond
)

// Say writes a line of its own, above the bar if there is one.
func (t *terminal) Say(format string, args ...any) {
	if t.bar != nil {
		t.bar.Clear() // a terminal that cannot be written to is no reason to stop
	}
	fmt.Fprintf(t.out, strings.TrimSuffix(format, "\n")+"\n", args...)
}

// Steps implements run.Reporter.
func (t *terminal) Steps(_, total int, limit time.Duration) train.Hook {
	t.meter = run.Meter{Limit: limit}
	if total == 0 {
		total = -1 // the bar turns into a spinner
	}
	// The bar's own estimate counts the steps of earlier sessions as made in no
	// time, so the description holds ours.
	t.bar = progressbar.NewOptions(total,
		progressbar.OptionSetWriter(t.out), progressbar.OptionShowCount(), progressbar.OptionSetWidth(barWidth),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionUseANSICodes(true),
		progressbar.OptionShowDescriptionAtLineEnd())
	return train.Hook{
		Name: "progress", Stage: train.StageLog,
		After:  func(_ context.Context, e *train.Event) error { t.show(e); return nil },
		Rewind: func(step int) error { t.Say("went back to step %d", step); return nil },
		End:    t.end,
	}
}

func (t *terminal) show(e *train.Event) {
	t.steps++
	t.meter.See(e)
	if e.Last || e.Interrupted || e.Now.Sub(t.drawn) >= redraw {
		t.drawn = e.Now
		t.bar.Describe(fit(t.meter.Fields(e), t.room(e)))
		t.bar.Set(e.Step)
	}
}

// end leaves the cursor on a fresh line.
func (t *terminal) end() error {
	if t.steps == 0 {
		return nil
	}
	_, err := fmt.Fprintln(t.out)
	return err
}

// room returns the columns that the bar leaves in its line, 0 if the width of
// the terminal is not known.
func (t *terminal) room(e *train.Event) int {
	f, ok := t.out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	// " 12% |bar| (step/total) " and a free column, so that the line never wraps.
	used := 5 + 2 + barWidth + 2 + len(fmt.Sprintf("(%d/%d)", e.Step, e.Total)) + 2
	return max(width-used, 1)
}

// fit joins as many fields as have room in so many columns; 0 is no limit.
func fit(fields []string, room int) string {
	line := ""
	for i, f := range fields {
		if i > 0 {
			f = " " + f
		}
		if room > 0 && len(line)+len(f) > room {
			break
		}
		line += f
	}
	return line
}

// Phase implements run.Reporter.
func (t *terminal) Phase(name string, done, total int) {
	if t.phases == nil {
		t.phases = &phaseBar{out: t.out}
	}
	t.phases.show(name, done, total)
}

// PhasesDone implements run.Reporter.
func (t *terminal) PhasesDone() {
	if t.phases != nil {
		t.phases.done()
		t.phases = nil
	}
}

// phaseBar shows the phases of an evaluation on a terminal.
type phaseBar struct {
	out   io.Writer
	phase string
	bar   *progressbar.ProgressBar
}

func newPhaseBar(out io.Writer, quiet bool) *phaseBar {
	if quiet || !isTerminal(out) {
		return &phaseBar{}
	}
	return &phaseBar{out: out}
}

func (b *phaseBar) show(phase string, done, total int) {
	if b.out == nil {
		return
	}
	if phase != b.phase {
		b.done()
		b.phase = phase
		b.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(phase),
			progressbar.OptionSetWidth(24), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	}
	b.bar.Set(done)
}

func (b *phaseBar) done() {
	if b.bar != nil {
		b.bar.Finish()
		b.bar = nil
	}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
