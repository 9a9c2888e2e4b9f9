package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/train"
)

// stepper makes steps that take a second of its clock.
type stepper struct{ now time.Time }

func (s *stepper) clock() time.Time { return s.now }

func (s *stepper) Undo() bool { return false }

func (s *stepper) Step(_ context.Context, step int) (train.StepResult, error) {
	s.now = s.now.Add(time.Second)
	return train.StepResult{Loss: 10 - float64(step), Parts: []train.Value{{Name: "itm", Value: 4}}, GradNorm: 2, LR: 1e-3, Temperature: 0.07, Samples: 8}, nil
}

func TestTerminal(t *testing.T) {
	var b bytes.Buffer
	shown, s := &terminal{out: &b, draw: &b, phases: &phaseBar{out: &b}}, &stepper{}
	shown.Say("%s", "a note\n")
	if _, err := train.Run(t.Context(), train.Config{Total: 12, Now: s.clock}, s, train.Metrics(0), shown.Steps(0, 12, 0)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(b.String(), "\n") {
		t.Errorf("the steps end within a line: %q", b.String())
	}
	shown.Phase("encoding texts", 1, 2)
	shown.PhasesDone()
	shown.Phase("encoding texts", 2, 2) // of the next evaluation
	shown.PhasesDone()
	got := b.String()
	for _, want := range []string{"a note\n", "\r", "12/12", "itm 4.000", "lr 1.0e-03", "temp 0.0700", "samples/s", "ETA ", "encoding texts"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// A phase of many parts is not drawn for each of them, and its end is.
func TestPhaseIsDrawnAtTimes(t *testing.T) {
	var b bytes.Buffer
	bar, begin := phaseBar{out: &b}, time.Now()
	const parts = 5000
	for i := range parts {
		bar.show("reading", i+1, parts)
	}
	most := int(time.Since(begin)/redraw) + 2
	if n := strings.Count(b.String(), "%"); n > 2*most || !strings.Contains(b.String(), "(5000/5000)") { // each is written twice
		t.Errorf("%d parts are drawn %d times, want at most %d, with the last", parts, n, 2*most)
	}
}
