package console

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train"
)

// stepper makes steps that take a second of its clock.
type stepper struct{ now time.Time }

func (s *stepper) clock() time.Time { return s.now }

func (s *stepper) Undo() bool { return false }

func (s *stepper) Step(_ context.Context, step int) (train.StepResult, error) {
	s.now = s.now.Add(time.Second)
	return train.StepResult{Loss: 10 - float64(step), Parts: []train.Value{{Name: "itc", Value: 3}, {Name: "itm", Value: 4}, {Name: "graph/image/seconds", Value: 1, Measure: true}},
		GradNorm: 2, LR: 1e-3, Temperature: 0.07, Samples: 8}, nil
}

// Lines are 10 steps apart, and the time that is left is by the steps of this session.
func TestLines(t *testing.T) {
	var b bytes.Buffer
	l, s := Lines(&b), &stepper{}
	l.Say("%d notes", 2)
	if _, err := train.Run(t.Context(), train.Config{Start: 100, Total: 125, Elapsed: time.Hour, Now: s.clock}, s, train.Metrics(0), l.Steps(100, 125, 0)); err != nil {
		t.Fatal(err)
	}
	want := `2 notes
step 101/125  ETA 24s  loss -90.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700  8 samples/s
step 111/125  ETA 14s  loss -100.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700  8 samples/s
step 121/125  ETA 4s  loss -110.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700  8 samples/s
step 125/125  loss -114.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700  8 samples/s
`
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// The time that is left of a run of 10^15 steps is longer than a time.Duration can be, and never below 0.
func TestTimeLeftOfALongRun(t *testing.T) {
	m := Meter{}
	e := &train.Event{Step: 1, Total: 1e15, Elapsed: time.Second, StepTime: time.Second}
	m.See(e)
	if got := m.Fields(e)[0]; got != "ETA 2562047h47m16s" {
		t.Errorf("got %s, want 292 years", got)
	}
}

// A run by time has no number of steps.
func TestLinesByTime(t *testing.T) {
	var b bytes.Buffer
	s := &stepper{}
	hook := Lines(&b).Steps(0, 0, 3*time.Second)
	check.Get(train.Run(t.Context(), train.Config{Limit: 3 * time.Second, Now: s.clock}, s, hook))(t)
	check.OK(t, hook.Rewind(1))
	want := `step 1  ETA 2s  loss 10.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700
step 3  loss 8.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700
went back to step 1
`
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestSilence(t *testing.T) {
	l, s := Lines(nil), &stepper{}
	l.Say("nothing")
	check.Get(train.Run(t.Context(), train.Config{Total: 2, Now: s.clock}, s, l.Steps(0, 2, 0)))(t)
}

// A part that is small is not shown as 0.
func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0.000", 0.0005: "0.001", 4.96e-4: "5.0e-04", -2e-7: "-2.0e-07", 1.386: "1.386", -90: "-90.000"} {
		if got := short(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}
