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

// Progress shows how far a run is: ETA, loss and each of its parts, learning rate,
// temperature and samples per second. On a narrow terminal the last of these are
// left out. It is not safe for concurrent use.
type Progress struct {
	c     ProgressConfig
	bar   *progressbar.ProgressBar // nil without a terminal
	steps int                      // of this session
	spent time.Duration            // by those steps
	begin time.Duration            // Elapsed when the session began
	last  time.Time                // of the last line or redrawn bar
}

// barWidth is the length of the bar proper; redraw the least time between two states of it.
const (
	barWidth = 12
	redraw   = 100 * time.Millisecond
)

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
		progressbar.OptionSetWriter(c.Out), progressbar.OptionShowCount(), progressbar.OptionSetWidth(barWidth),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionUseANSICodes(true),
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
	if p.bar != nil {
		if e.final() || e.Now.Sub(p.last) >= redraw {
			p.last = e.Now
			p.bar.Describe(fit(p.fields(e), p.room(e)))
			p.bar.Set(e.Step)
		}
		return
	}
	if p.steps == 1 || e.final() || e.Evaluated || e.Skipped || e.Now.Sub(p.last) >= p.c.Every {
		p.last = e.Now
		of := ""
		if e.Total > 0 {
			of = fmt.Sprintf("/%d", e.Total)
		}
		p.Printf("step %d%s  %s", e.Step, of, strings.Join(p.fields(e), "  "))
	}
}

// fields returns the numbers of a step, the most wanted first.
func (p *Progress) fields(e *Event) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if left, ok := p.left(e); ok {
		add("ETA %s", left.Round(time.Second))
	}
	if e.Skipped {
		add("skipped: not finite")
		return out
	}
	r := e.Result
	add("loss %.3f", r.Loss)
	for _, v := range r.Parts {
		if v.Measure && strings.Contains(v.Name, "/") {
			continue // of a group, such as graph/image/seconds: for the log alone
		}
		add("%s %s", v.Name, short(float64(v.Value)))
	}
	add("lr %.1e", r.LR)
	if r.Temperature != 0 {
		add("temp %.4f", r.Temperature)
	}
	if v, ok := e.Values["samples_per_second"]; ok {
		add("%.0f samples/s", v)
	}
	return out
}

// short writes a part of a loss with three decimals, or where those would all be 0, as of
// a geometric term, with an exponent.
func short(v float64) string {
	if a := math.Abs(v); a > 0 && a < 5e-4 {
		return fmt.Sprintf("%.1e", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// room returns the columns that the bar leaves in its line, 0 if the width of
// the terminal is not known.
func (p *Progress) room(e *Event) int {
	f, ok := p.c.Out.(*os.File)
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
