package console

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/schedule"
)

// Meter makes the numbers by which a person follows a run: ETA, loss and each of its
// parts, learning rate, temperature and samples per second. A Reporter that shows more
// than lines has one of its own.
type Meter struct {
	Limit time.Duration // time limit of a run without a number of steps, for the estimate

	steps int           // of this session
	spent time.Duration // by those steps
	begin time.Duration // Elapsed when the session began
}

// See takes in a step; it comes before Fields.
func (m *Meter) See(e *train.Event) {
	if m.steps == 0 {
		m.begin = e.Elapsed - e.StepTime
	}
	m.steps++
	m.spent = e.Elapsed - m.begin
}

// Fields returns the numbers of the step that was seen last, the most wanted first.
func (m *Meter) Fields(e *train.Event) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if left, ok := m.left(e); ok {
		add("ETA %s", left.Round(time.Second))
	}
	if e.Skipped {
		add("skipped: not finite")
		return out
	}
	r := e.Result
	if r.Fit {
		for _, v := range r.Parts {
			add("%s %s", strings.TrimPrefix(v.Name, "fit/"), short(v.Value))
		}
		add("%d pairs", r.Samples)
		return out
	}
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

// left estimates the time that the rest of the run takes, from the steps of this
// session with all that was done between them.
func (m *Meter) left(e *train.Event) (time.Duration, bool) {
	switch {
	case final(e):
		return 0, false
	case e.Total > 0:
		return schedule.Seconds(m.spent.Seconds() / float64(m.steps) * float64(e.Total-e.Step)), true
	case m.Limit > 0:
		return max(m.Limit-e.Elapsed, 0), true
	}
	return 0, false
}

// final reports whether the process ends after a step.
func final(e *train.Event) bool { return e.Last || e.Interrupted }

// short writes a part of a loss with three decimals, or where those would all be 0, as of
// a geometric term, with an exponent.
func short(v float64) string {
	if a := math.Abs(v); a > 0 && a < 5e-4 {
		return fmt.Sprintf("%.1e", v)
	}
	return fmt.Sprintf("%.3f", v)
}
