package train

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// ProgressConfig says where and how progress is shown.
type ProgressConfig struct {
	Out      io.Writer     // nil: standard error
	Terminal bool          // a bar that is redrawn; otherwise plain lines
	Quiet    bool          // nothing at all
	Every    time.Duration // between plain lines; 0: 10 seconds
	Start    int           // updates done before
	Total    int           // updates of the run; 0: not known
	Limit    time.Duration // time limit of a run without Total, for the estimate
}

// Progress shows how far a run is: ETA, samples per second, loss and each of its
// parts, learning rate and temperature. It is not safe for concurrent use.
type Progress struct {
	c     ProgressConfig
	bar   *progressbar.ProgressBar // nil without a terminal
	steps int                      // of this session
	spent time.Duration            // by those steps
	begin time.Duration            // Elapsed when the session began
	last  time.Time                // of the last line
	line  string                   // not shown yet
}

// IsTerminal reports whether f is a terminal, for ProgressConfig.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// NewProgress returns a Progress; its Hook takes part in a run.
func NewProgress(c ProgressConfig) *Progress {
	if c.Out == nil {
		c.Out = os.Stderr
	}
	if c.Every <= 0 {
		c.Every = 10 * time.Second
	}
	p := &Progress{c: c}
	if !c.Terminal || c.Quiet {
		return p
	}
	total := -1 // the bar turns into a spinner
	if c.Total > 0 {
		total = c.Total
	}
	// The bar's own estimate counts the steps of earlier sessions as made in no
	// time, so the description holds ours.
	p.bar = progressbar.NewOptions(total,
		progressbar.OptionSetWriter(c.Out), progressbar.OptionShowCount(), progressbar.OptionSetWidth(16),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionShowDescriptionAtLineEnd())
	return p
}

// ChanceLoss describes the contrastive loss of a model that knows nothing: ln(n)
// for n candidates, one of them right.
func ChanceLoss(candidates int) string {
	return fmt.Sprintf("chance level of the contrastive loss: ln(%d) = %.3f", candidates, math.Log(float64(candidates)))
}

// Printf writes a line of its own, above the bar if there is one. A final line
// feed is added.
func (p *Progress) Printf(format string, args ...any) {
	if p.c.Quiet {
		return
	}
	if p.bar != nil {
		p.bar.Clear() // a terminal that cannot be written to is no reason to stop
	}
	fmt.Fprintf(p.c.Out, strings.TrimSuffix(format, "\n")+"\n", args...)
}

// Hook returns the hook that shows every step. It goes after the log.
func (p *Progress) Hook() Hook {
	return Hook{
		Name: "progress", Stage: StageLog,
		After:  func(_ context.Context, e *Event) error { p.show(e); return nil },
		Rewind: func(step int) error { p.Printf("went back to step %d", step); return nil },
		End:    p.end,
	}
}

func (p *Progress) show(e *Event) {
	if p.c.Quiet {
		return
	}
	if p.steps == 0 {
		p.begin = e.Elapsed - e.StepTime
	}
	p.steps++
	p.spent = e.Elapsed - p.begin
	p.line = p.describe(e)
	if p.bar != nil {
		p.bar.Describe(p.line)
		p.bar.Set(e.Step)
		return
	}
	if p.steps == 1 || e.final() || e.Evaluated || e.Now.Sub(p.last) >= p.c.Every {
		of := ""
		if e.Total > 0 {
			of = fmt.Sprintf("/%d", e.Total)
		}
		p.Printf("step %d%s  %s", e.Step, of, p.line)
		p.last, p.line = e.Now, ""
	}
}

// describe returns the numbers of a step.
func (p *Progress) describe(e *Event) string {
	var b strings.Builder
	r := e.Result
	if e.Skipped {
		b.WriteString("skipped: not finite")
	} else {
		fmt.Fprintf(&b, "loss %.4f", r.Loss)
		for _, v := range r.Parts {
			fmt.Fprintf(&b, "  %s %.4f", v.Name, v.Value)
		}
		fmt.Fprintf(&b, "  lr %.2e", r.LR)
		if r.Temperature != 0 {
			fmt.Fprintf(&b, "  temperature %.4f", r.Temperature)
		}
		if v, ok := e.Values["samples_per_second"]; ok {
			fmt.Fprintf(&b, "  %.1f samples/s", v)
		}
	}
	if left, ok := p.left(e); ok {
		fmt.Fprintf(&b, "  ETA %s", left.Round(time.Second))
	}
	return b.String()
}

// left estimates the time that the rest of the run takes, from the steps of this
// session with all that was done between them.
func (p *Progress) left(e *Event) (time.Duration, bool) {
	switch {
	case e.final():
		return 0, false
	case e.Total > 0:
		return time.Duration(float64(p.spent) / float64(p.steps) * float64(e.Total-e.Step)), true
	case p.c.Limit > 0:
		return max(p.c.Limit-e.Elapsed, 0), true
	}
	return 0, false
}

// end leaves the cursor on a fresh line.
func (p *Progress) end() error {
	if p.bar == nil || p.steps == 0 {
		return nil
	}
	_, err := fmt.Fprintln(p.c.Out)
	return err
}
