package schedule

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

func newLR(t *testing.T, peak float64, c Settings, s Span) LR {
	t.Helper()
	return check.Get(NewLR(peak, c, s))(t)
}

// near compares to the five digits that the vectors are printed with.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.5e-4*math.Abs(want) }

// The rates of ALBEF's pre-training: 30 epochs, lr 1e-4,
// warm-up and least rate 1e-5, 20 ticks of 100 steps.
func TestStaircasePretraining(t *testing.T) {
	const perEpoch = 7000
	lr := newLR(t, 1e-4, Settings{Kind: "staircase", WarmupSteps: 2000, WarmupLR: 1e-5, MinLR: 1e-5}, Span{Total: 30 * perEpoch, Epoch: perEpoch})
	for _, c := range []struct {
		epoch, i int
		want     float64
	}{
		{0, 0, 1e-5}, {0, 99, 1e-5}, {0, 100, 1e-5}, {0, 101, 1.45e-5}, {0, 1001, 5.5e-5}, {0, 2000, 9.55e-5},
		{0, 2001, 1e-4}, {0, 6999, 1e-4}, {1, 0, 9.9753e-5}, {1, 6999, 9.9753e-5}, {15, 3, 5.5e-5}, {29, 0, 1.0247e-5},
	} {
		if got := lr.At(c.epoch*perEpoch + c.i); !near(got, c.want) {
			t.Errorf("epoch %d, step %d: got %.5g, want %.5g", c.epoch, c.i, got, c.want)
		}
	}
}

// TestStaircaseIsTheLoop plays ALBEF's training loop with a variable for the optimiser's rate:
// it starts where the warm-up does, is set before an epoch but the first, and in the first
// after the update of every hundredth iteration up to the end of the warm-up.
func TestStaircaseIsTheLoop(t *testing.T) {
	const peak, start, least = 1e-4, 1e-5, 2e-6
	for _, c := range []struct{ epochs, perEpoch, ticks int }{{3, 450, 2}, {2, 201, 2}, {2, 200, 2}, {4, 150, 3}, {2, 101, 1}, {3, 120, 0}} {
		lr := newLR(t, peak, Settings{Kind: "staircase", WarmupSteps: 100 * c.ticks, WarmupLR: start, MinLR: least}, Span{Total: c.epochs * c.perEpoch, Epoch: float64(c.perEpoch)})
		rate := start
		set := func(at int) {
			if rate = start + float64(at)*(peak-start)/float64(c.ticks); at >= c.ticks {
				rate = least + (peak-least)/2*(1+math.Cos(math.Pi*float64(at-c.ticks)/float64(c.epochs)))
			}
		}
		if c.ticks == 0 {
			rate = peak
		}
		update := 0
		for epoch := range c.epochs {
			if epoch > 0 {
				set(epoch + c.ticks)
			}
			for i := range c.perEpoch {
				if got := lr.At(update); !(math.Abs(got-rate) <= 1e-12*peak) {
					t.Errorf("%+v: update %d has the rate %g, want %g", c, update, got, rate)
				}
				if update++; epoch == 0 && i%100 == 0 && i <= 100*c.ticks {
					set(i / 100)
				}
			}
		}
	}
}

// The rates of ALBEF's retrieval fine-tuning on COCO.
func TestStaircaseFinetuning(t *testing.T) {
	lr := newLR(t, 1e-5, Settings{Kind: "staircase", MinLR: 1e-6}, Span{Total: 50, Epoch: 10})
	for e, want := range []float64{1e-5, 9.1406e-6, 6.8906e-6, 4.1094e-6, 1.8594e-6} {
		for _, i := range []int{0, 9} {
			if got := lr.At(e*10 + i); !near(got, want) {
				t.Errorf("epoch %d: got %.5g, want %.5g", e, got, want)
			}
		}
	}
}

// Values by hand: W 10, T 110, half way through the cosine the mean of both ends.
func TestCosine(t *testing.T) {
	lr := newLR(t, 1, Settings{Kind: "cosine", WarmupSteps: 10, WarmupLR: 0.1, MinLR: 0.2}, Span{Total: 110, Epoch: 10})
	for _, c := range []struct {
		step int
		want float64
	}{{0, 0.1}, {5, 0.55}, {9, 0.91}, {10, 1}, {60, 0.6}, {35, 0.2 + 0.4*(1+math.Sqrt2/2)}, {110, 0.2}, {500, 0.2}} {
		if got := lr.At(c.step); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("step %d: got %v, want %v", c.step, got, c.want)
		}
	}
}

// A trial of a few steps follows the long warm-up of its configuration.
// TestStep: the rates of SCAN's published training on Flickr30K, 2e-4 that falls to a tenth after epoch 15, by the formula of its
// code, lr * 0.1^(epoch // lr_update).
func TestStep(t *testing.T) {
	const perEpoch = 1133
	lr := newLR(t, 2e-4, Settings{Kind: "step", StepEpochs: 15, StepFactor: .1}, Span{Epoch: perEpoch})
	for _, c := range []struct {
		step int
		want float64
	}{{0, 2e-4}, {15*perEpoch - 1, 2e-4}, {15 * perEpoch, 2e-5}, {30*perEpoch - 1, 2e-5}, {30 * perEpoch, 2e-6}} {
		if got := lr.At(c.step); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("step %d: got %v, want %v", c.step, got, c.want)
		}
	}
	warm := newLR(t, 2e-4, Settings{Kind: "step", StepEpochs: 1, StepFactor: .5, WarmupSteps: 4, WarmupLR: 1e-4}, Span{Epoch: 10})
	for step, want := range map[int]float64{0: 1e-4, 2: 1.5e-4, 4: 2e-4, 10: 1e-4, 25: 5e-5} {
		if got := warm.At(step); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("with a warm-up, step %d: got %v, want %v", step, got, want)
		}
	}
	check.Fails(NewLR(1, Settings{Kind: "step", StepEpochs: 15, StepFactor: .1}, Span{}))(t, "step needs the steps of an epoch")
	check.Fails(NewLR(1, Settings{Kind: "step", StepFactor: .1}, Span{Epoch: 3}))(t, "schedule.step_epochs and step_factor")
}

func TestRunWithinTheWarmup(t *testing.T) {
	lr := newLR(t, 1, Settings{Kind: "cosine", WarmupSteps: 10}, Span{Total: 5, Epoch: 10})
	if lr.At(0) != 0 || lr.At(4) != 0.4 || lr.At(10) != 1 {
		t.Errorf("rates %v %v %v", lr.At(0), lr.At(4), lr.At(10))
	}
}

// Epochs end within steps where batches are accumulated: 7 batches by 4 are 1.75 steps, so that 4 of 8 epochs are 7 of 14 steps, and
// the steps after 0, 2, 4 and 6 earlier ones are the first of epochs 0, 1, 2 and 3.
func TestEpochsThatEndWithinSteps(t *testing.T) {
	span, err := NewSpan(Length{BatchSize: 8, AccumulateSteps: 4, MaxEpochs: 8}, 56, true)
	if err != nil || span.Total != 14 {
		t.Fatalf("%+v, %v", span, err)
	}
	if lr := newLR(t, 2, Settings{Kind: "cosine", WarmupEpochs: 4}, span); lr.WarmupSteps() != 7 {
		t.Errorf("a warm-up of 4 epochs of 1.75 steps has %d, want 7", lr.WarmupSteps())
	}
	span.Total = 7 // 4 epochs
	lr := newLR(t, 1, Settings{Kind: "staircase"}, span)
	for step, epoch := range []float64{0, 0, 1, 1, 2, 2, 3} {
		if got, want := lr.At(step), 0.5*(1+math.Cos(math.Pi*epoch/4)); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("step %d has the rate %v, want %v of epoch %v of 4", step, got, want, epoch)
		}
	}
}

func TestConstantAndWarmupUnits(t *testing.T) {
	for name, c := range map[string]Settings{
		"steps":   {Kind: "constant", WarmupSteps: 20},
		"epochs":  {Kind: "constant", WarmupEpochs: 2},
		"percent": {Kind: "constant", WarmupPercent: 10},
	} {
		lr := newLR(t, 2, c, Span{Total: 200, Epoch: 10})
		if lr.WarmupSteps() != 20 || lr.At(0) != 0 || lr.At(10) != 1 || lr.At(20) != 2 || lr.At(1000) != 2 {
			t.Errorf("%s: warm-up %d, rates %v %v %v", name, lr.WarmupSteps(), lr.At(0), lr.At(10), lr.At(20))
		}
	}
}

func TestNewLRErrors(t *testing.T) {
	span := Span{Total: 100, Epoch: 10}
	for _, c := range []struct {
		name string
		lr   float64
		c    Settings
		s    Span
		want string
	}{
		{"kind", 1, Settings{Kind: "cosin"}, span, "unknown kind"},
		{"minutes", 1, Settings{Kind: "cosine"}, Span{Epoch: 10}, "needs the number of steps"},
		{"two warm-ups", 1, Settings{Kind: "cosine", WarmupSteps: 1, WarmupEpochs: 1}, span, "set one of"},
		{"negative", -1, Settings{Kind: "cosine"}, span, "optimizer.lr"},
		{"nan", 1, Settings{Kind: "cosine", MinLR: math.NaN()}, span, "schedule.min_lr"},
		{"percent of unknown", 1, Settings{Kind: "constant", WarmupPercent: 5}, Span{Epoch: 10}, "warmup_percent"},
	} {
		if _, err := NewLR(c.lr, c.c, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// By hand: (1+t)/(10+t); 0.995 is reached at t = (9.95-1)/0.005 = 1790.
func TestMomentum(t *testing.T) {
	for step, want := range map[int]float64{0: 0.1, 8: 0.5, 90: 0.91, 1789: 1790. / 1799, 1791: 0.995, 1e6: 0.995} {
		if got := Momentum(step, 0.995, 10); !(math.Abs(got-want) <= 1e-15) {
			t.Errorf("step %d: got %v, want %v", step, got, want)
		}
	}
	if got := Momentum(0, 0.995, 0); got != 0.995 {
		t.Errorf("without a ramp: got %v", got)
	}
}

// TestDynamicMomentum: a cosine is the share of the online parameters, or that of the twin, and one outside of [0, 1]
// counts as the nearer end.
func TestDynamicMomentum(t *testing.T) {
	for _, c := range []struct{ cosine, online, ofTeacher float64 }{
		{0.995, 0.005, 0.995}, {1, 0, 1}, {1.0000001, 0, 1}, {0.25, 0.75, 0.25}, {0, 1, 0}, {-0.5, 1, 0},
	} {
		if got := DynamicMomentum(c.cosine, false); !(math.Abs(got-c.online) <= 1e-15) {
			t.Errorf("cosine %v: the twins keep %v, want %v", c.cosine, got, c.online)
		}
		if got := DynamicMomentum(c.cosine, true); got != c.ofTeacher {
			t.Errorf("cosine %v of the teacher: the twins keep %v, want %v", c.cosine, got, c.ofTeacher)
		}
	}
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		every, total int
		want         []int
	}{
		{10, 35, []int{10, 20, 30, 35}},
		{10, 32, []int{10, 20, 32}}, // 30 is 2 steps from the end, less than 10/4
		{10, 40, []int{10, 20, 30, 40}},
		{100, 40, []int{40}},
		{0, 40, nil},
		{10, 0, []int{10, 20, 30, 40, 50}},
		{1, 3, []int{1, 2, 3}},
	} {
		var got []int
		for s := 0; s <= 50 && (c.total == 0 || s <= c.total); s++ {
			if Due(s, c.every, c.total) {
				got = append(got, s)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("every %d of %d: got %v, want %v", c.every, c.total, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("every %d of %d: got %v, want %v", c.every, c.total, got, c.want)
			}
		}
	}
}

func TestNewSpan(t *testing.T) {
	for _, c := range []struct {
		name    string
		c       Length
		samples int
		drop    bool
		want    Span
	}{
		{"steps", Length{BatchSize: 8, MaxSteps: 7}, 100, true, Span{Total: 7, PerEpoch: 12, Epoch: 12}},
		{"epochs, last kept", Length{BatchSize: 8, MaxEpochs: 2}, 100, false, Span{Total: 26, PerEpoch: 13, Epoch: 13}},
		{"epochs, last dropped", Length{BatchSize: 8, MaxEpochs: 2}, 100, true, Span{Total: 24, PerEpoch: 12, Epoch: 12}},
		{"part of an epoch", Length{BatchSize: 8, MaxEpochs: 0.1}, 100, true, Span{Total: 2, PerEpoch: 12, Epoch: 12}},
		{"accumulated", Length{BatchSize: 8, AccumulateSteps: 4, MaxEpochs: 1}, 96, true, Span{Total: 3, PerEpoch: 3, Epoch: 3}},
		{"samples", Length{BatchSize: 8, AccumulateSteps: 2, MaxSamples: 33}, 100, true, Span{Total: 3, PerEpoch: 6, Epoch: 6}},
		{"samples of whole steps", Length{BatchSize: 8, AccumulateSteps: 2, MaxSamples: 32}, 100, true, Span{Total: 2, PerEpoch: 6, Epoch: 6}},
		{"an epoch that ends within a step", Length{BatchSize: 8, AccumulateSteps: 4, MaxEpochs: 2}, 100, false, Span{Total: 7, PerEpoch: 3, Epoch: 3.25}},
		{"several epochs a step", Length{BatchSize: 64, AccumulateSteps: 4, MaxEpochs: 10}, 100, true, Span{Total: 3, PerEpoch: 1, Epoch: 0.25}},
		{"minutes", Length{BatchSize: 8, MaxMinutes: 1.5}, 100, true, Span{PerEpoch: 12, Epoch: 12, Limit: 90 * time.Second}},
		{"minutes beyond any time.Duration", Length{BatchSize: 8, MaxMinutes: 1e9}, 100, true, Span{PerEpoch: 12, Epoch: 12, Limit: longest}},
	} {
		if got, err := NewSpan(c.c, c.samples, c.drop); err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	for name, c := range map[string]Length{
		"none":   {BatchSize: 8},
		"two":    {BatchSize: 8, MaxSteps: 1, MaxEpochs: 1},
		"batch":  {MaxSteps: 1},
		"full":   {BatchSize: 101, MaxSteps: 1},
		"negate": {BatchSize: 8, MaxSteps: -1},
	} {
		if got, err := NewSpan(c, 100, true); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}
