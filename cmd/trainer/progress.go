package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/train"
)

// newReporter returns what shows a run on out: a bar on a terminal, else lines.
func newReporter(out io.Writer, quiet bool) console.Reporter {
	if quiet {
		return console.Lines(nil)
	}
	if f := terminalOf(out); f != nil {
		return &terminal{out: out, draw: f, phases: newPhaseBar(out, false)}
	}
	return console.Lines(out)
}

// terminal shows a run on a terminal: a bar that is redrawn, with the numbers of the step
// behind it, of which the last are left out where the terminal is narrow.
type terminal struct {
	out    io.Writer // of lines
	draw   io.Writer // of bars
	bar    *bar      // nil before the steps
	meter  console.Meter
	steps  int       // of this session
	drawn  time.Time // the bar
	phases *phaseBar
}

// redraw is the least time between two states of the bar.
const redraw = 100 * time.Millisecond

// Say writes a line of its own, above the bar if there is one.
func (t *terminal) Say(format string, args ...any) {
	if t.bar != nil {
		t.bar.clear()
	}
	t.phases.done()
	fmt.Fprintf(t.out, strings.TrimSuffix(format, "\n")+"\n", args...)
}

// Steps implements run.Reporter.
func (t *terminal) Steps(_, total int, limit time.Duration) train.Hook {
	t.meter = console.Meter{Limit: limit}
	t.bar = newBar(t.draw, total)
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
		t.bar.show(e.Step, t.meter.Fields(e)...)
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

// Phase implements run.Reporter.
func (t *terminal) Phase(name string, done, total int) {
	t.phases.show(name, done, total)
}

// PhasesDone implements run.Reporter.
func (t *terminal) PhasesDone() { t.phases.done() }

// phaseBar shows the phases of an evaluation on a terminal.
type phaseBar struct {
	out   io.Writer // nil: nothing is shown
	mu    sync.Mutex
	phase string
	bar   *bar
	drawn time.Time
}

// newPhaseBar returns a bar on the terminal that out is. Messages to out stand above it.
func newPhaseBar(out io.Writer, quiet bool) *phaseBar {
	f := terminalOf(out)
	if f == nil || quiet {
		return &phaseBar{}
	}
	if o, ok := out.(*output); ok {
		return o.phases(f)
	}
	return &phaseBar{out: f}
}

func (b *phaseBar) show(phase string, done, total int) {
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch now := time.Now(); {
	case phase != b.phase || b.bar == nil:
		b.clear()
		b.phase, b.bar, b.drawn = phase, newBar(b.out, total), now
	case done != total && now.Sub(b.drawn) < redraw: // work of millions of parts has not as many states
		return
	default:
		b.drawn = now
	}
	b.bar.show(done, phase)
}

func (b *phaseBar) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

func (b *phaseBar) clear() {
	if b.bar != nil {
		b.bar.clear()
		b.bar = nil
	}
}
