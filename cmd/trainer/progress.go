package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

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

// bar is a progress bar on one line of a terminal, as wide as the terminal is at each redraw.
type bar struct {
	out     io.Writer
	total   int
	columns func() int // width of the terminal now; 0 where it is not known
	lib     *progressbar.ProgressBar
	drawn   int // columns of what stands on the terminal; 0: nothing
}

// leastBar is the width of the bar proper that fields behind it leave, and the width where
// that of the terminal is not known.
const leastBar = 12

// newBar returns a bar of total steps, a spinner where total is 0. Nothing is drawn yet.
func newBar(out io.Writer, total int) *bar {
	b := &bar{out: out, total: total, columns: func() int { return columnsOf(out) }}
	if total == 0 {
		total = -1 // a spinner
	}
	width := progressbar.OptionFullWidth()
	if b.columns() == 0 {
		width = progressbar.OptionSetWidth(leastBar)
	}
	// The library's own estimate counts the steps of earlier sessions as made in no time, so
	// the description holds ours.
	b.lib = progressbar.NewOptions(total, width,
		progressbar.OptionSetWriter(out), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionUseANSICodes(true),
		progressbar.OptionShowDescriptionAtLineEnd())
	return b
}

// show draws the bar at done with as many of the fields behind it as have room. A terminal
// that cannot be written to is not a reason to stop.
func (b *bar) show(done int, fields ...string) {
	b.unwrap()
	b.lib.Describe(fit(fields, b.room(done)))
	b.lib.Set(done)
	line := strings.TrimSuffix(strings.TrimPrefix(b.lib.String(), "\r"), "\033[0K")
	b.drawn = utf8.RuneCountInString(strings.TrimRight(line, " "))
}

// clear empties the line of the bar.
func (b *bar) clear() {
	b.unwrap()
	b.lib.Clear()
	b.drawn = 0
}

// unwrap empties the lines over which the terminal has spread the bar because it was made
// narrower since, and goes back to the first of them.
func (b *bar) unwrap() {
	if now := b.columns(); now > 0 && b.drawn > now {
		fmt.Fprintf(b.out, "\r\033[%dA\033[J", (b.drawn-1)/now)
	}
}

// room returns the columns that the shortest bar leaves for fields, 0 if the width of the
// terminal is not known.
func (b *bar) room(done int) int {
	width := b.columns()
	if width == 0 {
		return 0
	}
	// " 12% |bar| (step/total) " and a free column, so that the line never wraps.
	used := 5 + 2 + leastBar + 2 + len(fmt.Sprintf("(%d/%d)", done, b.total)) + 3
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

// columnsOf returns the width of the terminal that out is, 0 where it is not known.
func columnsOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
