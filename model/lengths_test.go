package model

import (
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/kernel"
)

// shortTexts has no text of a batch be longer than n tokens. What stands behind is noise: no step may read it.
func shortTexts(b *batch.Batch, n int32) *batch.Batch {
	for _, name := range []string{batch.Lengths, batch.SecondLengths, batch.ThirdLengths} {
		for i, l := range b.Ints(name) {
			b.Ints(name)[i] = min(l, n)
		}
	}
	return b
}

// undropped has no dropout: its masks are those of a row's place in the tensor, others in one of another length.
func undropped(cfg config.Config) config.Config {
	o := &cfg.Objective
	if o.SimCSE.On() { // asks for some
		cfg.Model.Text.Dropout = 1e-12
	} else {
		cfg.Model.Text.Dropout = 0
	}
	cfg.Model.Heads.Dropout, cfg.Model.LoRA.Dropout, cfg.Model.Interaction.Dropout = 0, 0, 0
	o.Captioning.Dropout, o.SentencePairs.Dropout, o.ADCL.Dropout, o.GSSF.Dropout = 0, 0, 0, 0
	return cfg
}

// TestShorterSteps: of every system with texts, a batch of short ones has the same losses, gradients by name and
// features for the queue in a step of fewer places as in the one of all, before and after an update.
func TestShorterSteps(t *testing.T) {
	const short = 4
	tried := 0
	for name, x := range rankCases() {
		t.Run(name, func(t *testing.T) {
			cfg := undropped(rankConfig(t, x))
			if !cfg.Has(section.Words) {
				t.Skip("no texts")
			}
			cfg.Data.TokenLengths = []int{3, short, 5}
			if err := cfg.Validate(); err != nil {
				if !strings.Contains(err.Error(), "data.token_lengths") {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			tried++
			m := newTrainer(t, cfg, rankOptions(t, x))
			cfg.Data.TokenLengths = nil
			full := newTrainer(t, cfg, rankOptions(t, x))
			if a, b := m.Footprint().Total(), full.Footprint().Total(); a != b {
				t.Errorf("%d bytes, %d of one step", a, b)
			}
			for update, longs := range [][]int32{{short, 1 << 20}, {5, 3}, {3, 5}} {
				check.OK(t, full.Before(update))
				check.OK(t, m.Before(update))
				for micro, long := range longs {
					b := shortTexts(randomRows(full.Columns(), cfg.Train.BatchSize, uint64(2*update+micro)), long)
					at := feed.Step{Batch: b, Update: update, Micro: micro, Counter: 2*update + micro, PerEpoch: 1}
					want, got := stepOf(t, full, &at), stepOf(t, m, &at)
					if m.step.batch == nil && long <= 5 || m.step.batch != nil && int32(m.step.places) != long {
						t.Errorf("texts of %d tokens pass a step of %d places", long, m.step.places)
					}
					for k, p := range want.Parts {
						if d := far(got.Parts[k].Value, p.Value, max(math.Abs(p.Value), .1)); (d > 1e-6 || math.IsNaN(d)) && !strings.HasSuffix(p.Name, "/seconds") {
							t.Errorf("update %d: %s is %v, %v in the full step", update, p.Name, got.Parts[k].Value, p.Value)
						}
					}
					sameByName(t, m, full, "gradient", (*Params).Grad, 1e-3)
				}
				if cfg.Momentum.Dynamic() {
					if a, b := m.TextAgreement(), full.TextAgreement(); far(a, b, 1) > 1e-6 {
						t.Errorf("update %d: texts agree by %v, by %v in the full step", update, a, b)
					}
				}
				move(full, full.params.Grads())
				move(m, full.params.Grads())
				check.OK(t, full.After())
				check.OK(t, m.After())
				sameByName(t, m, full, "value", (*Params).Value, 1e-2) // running statistics, the boundary of mismatches
				if q := m.Queue(); q != nil {
					compareQueues(t, "queue", q, full.Queue())
				}
			}
		})
	}
	if tried < 30 {
		t.Errorf("%d systems were tried", tried)
	}
}

// sameByName compares what models have of each parameter, to 1e-5 of the largest value of it, which is at least floor.
func sameByName(t *testing.T, m, full *Trainer, what string, of func(*Params, *Param) []float32, floor float64) {
	t.Helper()
	for _, q := range full.Params().List() {
		p, _ := m.Params().Get(q.Name)
		want, got, scale := of(full.Params(), q), of(m.Params(), p), floor
		for _, v := range want {
			scale = max(scale, math.Abs(float64(v)))
		}
		for i, v := range want {
			if d := far(float64(got[i]), float64(v), scale); d > 1e-5 || math.IsNaN(d) {
				t.Errorf("%s of %s [%d] is %v, %v in the full step", what, q.Name, i, got[i], v)
				break
			}
		}
	}
}

// lengthsModel is a model with all losses, dropout and steps for texts of fewer places.
func lengthsModel(t *testing.T, e *kernel.Engine) *Trainer {
	t.Helper()
	cfg := allOn()
	cfg.Data.TokenLengths = []int{3, 5}
	return modelOn(t, cfg, e)
}

// TestLengthsAllocateNothing: a step of another length than the one before allocates no more than one of the same.
func TestLengthsAllocateNothing(t *testing.T) {
	count := func(longs ...int32) float64 {
		m := lengthsModel(t, newEngine(t))
		var batches []*batch.Batch
		for i, n := range longs {
			batches = append(batches, shortTexts(randomRows(m.Columns(), m.cfg.Train.BatchSize, uint64(i)), n))
		}
		n, s := 0, feed.Step{}
		step := func() {
			s = feed.Step{Batch: batches[n%len(batches)], Update: n, Counter: n}
			stepOf(t, m, &s)
			check.OK(t, m.After())
			n++
		}
		step()
		step()
		least := math.Inf(1)
		for range 5 {
			least = min(least, testing.AllocsPerRun(6, step))
		}
		return least
	}
	if same, turns := count(1<<20), count(1<<20, 3, 5); turns > same {
		t.Errorf("%v allocations a step, %v with several lengths", same, turns)
	}
}

// TestCUDALengths: on a device, whose images are sent ahead, steps of several lengths have the losses and gradients of
// the host, in turns, and give its memory back.
func TestCUDALengths(t *testing.T) {
	d := cudatest.Open(t)
	var left [2]int64 // the device keeps what it works in
	for round := range left {
		lengthsOnDevice(t, d)
		left[round], _ = d.Allocated()
	}
	if left[1] > left[0] {
		t.Errorf("%d bytes of the device are not given back", left[1]-left[0])
	}
}

func lengthsOnDevice(t *testing.T, d *cuda.Device) {
	host, e := lengthsModel(t, engineOf(t, kernel.Options{Threads: 2})), engineOf(t, kernel.Options{Threads: 2})
	e.SetDevice(d)
	defer e.SetDevice(nil)
	m := lengthsModel(t, e)
	var batches []*batch.Batch
	for i, n := range []int32{1 << 20, 3, 5, 3, 1 << 20} {
		batches = append(batches, shortTexts(randomRows(m.Columns(), m.cfg.Train.BatchSize, uint64(i)), n))
	}
	for i, b := range batches {
		s := feed.Step{Batch: b, Update: i, Counter: i}
		check.OK(t, host.Before(i))
		check.OK(t, m.Before(i))
		want := stepOf(t, host, &s)
		if i+1 < len(batches) {
			m.Stage(batches[i+1])
		}
		got := stepOf(t, m, &s)
		if d := far(got.Loss, want.Loss, 1); d > 1e-4 || math.IsNaN(d) {
			t.Errorf("step %d: the loss is %v, %v on the host", i, got.Loss, want.Loss)
		}
		for j, v := range host.params.Grads() {
			if d := far(float64(m.params.Grads()[j]), float64(v), 1); d > 1e-3 || math.IsNaN(d) {
				t.Fatalf("step %d: gradient %d is %v, %v on the host", i, j, m.params.Grads()[j], v)
			}
		}
		check.OK(t, host.After())
		check.OK(t, m.After())
	}
	check.OK(t, m.Unstage())
	check.OK(t, m.Close())
}
