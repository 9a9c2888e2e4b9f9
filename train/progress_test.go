package train

import (
	"bytes"
	"context"
	"strings"
	"testing"
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
step 101/125  ETA 24s  loss -90.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700  8 samples/s
step 111/125  ETA 14s  loss -100.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700  8 samples/s
step 121/125  ETA 4s  loss -110.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700  8 samples/s
step 125/125  loss -114.000  itc 3.000  itm 4.000  lr 1.0e-03  temp 0.0700  8 samples/s
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestProgressBar(t *testing.T) {
	got := runWith(t, ProgressConfig{Terminal: true, Total: 12}, &fake{})
	for _, want := range []string{"ln(96) = 4.564\n", "\r", "12/12", "itm 4.000", "lr 1.0e-03", "temp 0.0700", "samples/s", "ETA "} {
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

func TestFit(t *testing.T) {
	fields := []string{"ETA 3s", "loss 1", "lr 2"}
	for room, want := range map[int]string{0: "ETA 3s loss 1 lr 2", 18: "ETA 3s loss 1 lr 2", 17: "ETA 3s loss 1", 6: "ETA 3s", 5: ""} {
		if got := fit(fields, room); got != want {
			t.Errorf("%d columns: got %q, want %q", room, got, want)
		}
	}
}

// A part that is small is not shown as 0.
func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0.000", 0.0005: "0.001", 4.96e-4: "5.0e-04", -2e-7: "-2.0e-07", 1.386: "1.386", -90: "-90.000"} {
		if got := short(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}
