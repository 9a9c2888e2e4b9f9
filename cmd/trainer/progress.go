package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/geoalign/geoalign/train"
)

// reporter shows a run on standard error: bars on a terminal, lines elsewhere.
type reporter struct {
	out      io.Writer
	quiet    bool
	progress *train.Progress // nil before the steps
	bar      *phaseBar
}

func newReporter(out io.Writer, quiet bool) *reporter {
	return &reporter{out: out, quiet: quiet, bar: newPhaseBar(out, quiet)}
}

// Say implements run.Reporter.
func (r *reporter) Say(format string, args ...any) {
	switch {
	case r.progress != nil:
		r.progress.Printf(format, args...)
	case !r.quiet:
		fmt.Fprintf(r.out, format+"\n", args...)
	}
}

// Steps implements run.Reporter.
func (r *reporter) Steps(start, total int, limit time.Duration) train.Hook {
	r.progress = train.NewProgress(train.ProgressConfig{Out: r.out, Terminal: isTerminal(r.out), Quiet: r.quiet, Start: start, Total: total, Limit: limit})
	return r.progress.Hook()
}

// Phase implements run.Reporter.
func (r *reporter) Phase(name string, done, total int) { r.bar.show(name, done, total) }

// PhasesDone implements run.Reporter.
func (r *reporter) PhasesDone() { r.bar.done() }

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
		b.bar, b.phase = nil, ""
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && train.IsTerminal(f)
}
