package train

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func runWith(t *testing.T, c ProgressConfig, f *fake) string {
	t.Helper()
	var b bytes.Buffer
	c.Out = &b
	p := NewProgress(c)
	p.Printf("%s", ChanceLoss(96))
	if _, err := Run(context.Background(), Config{Start: c.Start, Total: c.Total, Now: f.clock}, f, Metrics(0), p.Hook()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A step takes a second of the fake clock, so lines are 10 steps apart.
func TestProgressLines(t *testing.T) {
	got := runWith(t, ProgressConfig{Start: 100, Total: 125}, &fake{})
	want := `chance level of the contrastive loss: ln(96) = 4.564
step 101/125  loss -90.0000  itc 3.0000  itm 4.0000  lr 1.00e-03  temperature 0.0700  8.0 samples/s  ETA 24s
step 111/125  loss -100.0000  itc 3.0000  itm 4.0000  lr 1.00e-03  temperature 0.0700  8.0 samples/s  ETA 14s
step 121/125  loss -110.0000  itc 3.0000  itm 4.0000  lr 1.00e-03  temperature 0.0700  8.0 samples/s  ETA 4s
step 125/125  loss -114.0000  itc 3.0000  itm 4.0000  lr 1.00e-03  temperature 0.0700  8.0 samples/s
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestProgressBar(t *testing.T) {
	slow := &fake{before: func(int, int) error { time.Sleep(30 * time.Millisecond); return nil }}
	got := runWith(t, ProgressConfig{Terminal: true, Total: 12}, slow)
	for _, want := range []string{"ln(96) = 4.564\n", "\r", "12/12", "itm 4.0000", "lr 1.00e-03", "temperature 0.0700", "samples/s", "ETA "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if !strings.HasSuffix(got, "\n") {
		t.Errorf("ends within a line: %q", got)
	}
}

func TestProgressQuiet(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		if got := runWith(t, ProgressConfig{Terminal: terminal, Quiet: true, Total: 5}, &fake{}); got != "" {
			t.Errorf("quiet printed %q", got)
		}
	}
}
