package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/batch"
)

// rankCase is a system or a loss that several processes train.
type rankCase struct {
	sets  []string // over run/testdata/keys.toml
	o     func(o *Options)
	ranks int // 0: 2
}

// rankCases are all systems and losses, with dropout.
func rankCases() map[string]rankCase {
	dual := []string{"model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0"}
	cosine := []string{"objective.itc.scores=[]", "objective.siglip.weight=0", "objective.geometric.weight=0", "objective.tcl.intra=false", "objective.tcl.local=false"}
	untaught := []string{"momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "objective.itc.weight=0", "data.views=1"}
	clip := slices.Concat(dual, cosine, untaught, []string{"model.system=clip"})
	pair := []string{"objective.itc.positives=pair"}
	with := func(lists ...[]string) rankCase { return rankCase{sets: slices.Concat(lists...)} }
	return map[string]rankCase{
		"clip":              with(clip, pair),
		"clip, ids":         with(clip),
		"clip, sigmoid":     with(clip, pair, []string{"objective.siglip.weight=1", "objective.itc.in_batch_weight=0"}),
		"clip, sigmoid ids": with(clip, []string{"objective.siglip.weight=1"}),
	}
}

// rankConfig is a case's configuration.
func rankConfig(t *testing.T, x rankCase) config.Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/vocab.txt", []byte("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nred\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load("../run/testdata/keys.toml", slices.Concat([]string{"data.root=" + dir, "data.vocab=vocab.txt"}, x.sets))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// randomRows is a batch with something in every column.
func randomRows(columns []batch.Column, rows int, seed uint64) *batch.Batch {
	b, r := batch.New(rows, columns...), rand.New(rand.NewPCG(seed, 5))
	lens := map[string]int{} // of texts
	for _, c := range columns {
		if len(c.Shape) > 0 {
			lens[c.Name] = c.Shape[len(c.Shape)-1]
		}
	}
	for _, c := range columns {
		if x := b.Floats(c.Name); c.Type == batch.Float32 {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			if c.Name == batch.AnswerWeights {
				for i := range x {
					x[i] = float32(i%3) / 2
				}
			}
			continue
		}
		x, l := b.Ints(c.Name), max(1, lens[c.Name])
		for i := range x {
			switch c.Name {
			case batch.Tokens, batch.SecondTokens, batch.ThirdTokens, batch.Answers:
				if x[i] = int32(5 + r.IntN(rankVocab-5)); i%l == 0 {
					x[i] = 2
				}
			case batch.Lengths, batch.SecondLengths, batch.ThirdLengths:
				x[i] = int32(3 + r.IntN(lens[batch.Tokens]-2))
			case batch.AnswerLengths:
				x[i] = int32(2 + r.IntN(lens[batch.Answers]-1))
			case batch.RegionLengths:
				x[i] = int32(1 + r.IntN(b.Columns()[slices.IndexFunc(b.Columns(), func(c batch.Column) bool { return c.Name == batch.Regions })].Shape[0]))
			case batch.IDs:
				x[i] = int32(i * 5 / 7)
			case batch.Labels:
				x[i] = int32(r.IntN(4)) - 1
			case batch.Segments, batch.Paired:
				x[i] = int32(r.IntN(2))
			case batch.ImageNeighbours, batch.TextNeighbours:
				x[i] = int32(r.IntN(rankPool))
			}
		}
	}
	return b
}

const (
	rankVocab = 20
	rankPool  = 30
)

// shareOf are the rows of a batch that a rank of n has.
func shareOf(b *batch.Batch, rank, n int) *batch.Batch {
	rows := b.Rows() / n
	own := batch.New(rows, b.Columns()...)
	for i := range rows {
		own.Row(i).Copy(b.Row(rank*rows + i))
	}
	return own
}

// withRanks builds the model of one process and those of n ranks.
func withRanks(t *testing.T, x rankCase) (whole *Pairs, ranks []*Pairs) {
	t.Helper()
	cfg := rankConfig(t, x)
	o := Options{Engine: newEngine(t), Vocab: rankVocab, MaskID: 4, Begin: 1, End: 1, BeginID: 2, EndID: 3}
	if x.o != nil {
		x.o(&o)
	}
	whole, err := New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range paralleltest.Ranks(max(2, x.ranks)) {
		own := o
		own.Engine, own.Group = newEngine(t), g
		m, err := New(cfg, own)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, m)
	}
	return whole, ranks
}

// onRanks calls f for all ranks at once.
func onRanks(t *testing.T, ranks []*Pairs, f func(i int, m *Pairs) error) {
	t.Helper()
	errs := make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, m := range ranks {
		wg.Go(func() { errs[i] = f(i, m) })
	}
	done := make(chan bool)
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("the ranks wait for each other: %v", errs)
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// far says how far a value is from the one that it should be, as a share of scale.
func far(got, want, scale float64) float64 { return math.Abs(got-want) / max(scale, 1e-30) }

// TestRanks: several ranks and one process have, of one global batch, the same losses, gradients and queues, with all that is
// random.
func TestRanks(t *testing.T) {
	for name, x := range rankCases() {
		t.Run(name, func(t *testing.T) {
			whole, ranks := withRanks(t, x)
			for step := range 3 {
				agree(t, whole, ranks, step)
			}
		})
	}
}

// agree makes an update of one process and of ranks and compares them.
func agree(t *testing.T, whole *Pairs, ranks []*Pairs, step int) {
	t.Helper()
	b := randomRows(whole.Columns(), whole.cfg.Train.BatchSize, uint64(step))
	at := feed.Step{Batch: b, Update: step, Counter: step, PerEpoch: 1}
	if err := whole.Before(step); err != nil {
		t.Fatal(err)
	}
	want, err := whole.Step(t.Context(), &at)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]*Result, len(ranks))
	onRanks(t, ranks, func(i int, m *Pairs) error {
		own := at
		own.Batch, own.Rank, own.Ranks = shareOf(b, i, len(ranks)), i, len(ranks)
		err := m.Before(step)
		if err == nil {
			got[i], err = m.Step(t.Context(), &own)
		}
		return err
	})
	const tol = 1e-5
	for k, p := range want.Parts {
		mean := 0.
		for _, r := range got {
			mean += r.Parts[k].Value / float64(len(ranks))
		}
		if d := far(mean, p.Value, max(math.Abs(p.Value), 1e-2)); d > tol || math.IsNaN(d) {
			t.Errorf("step %d: %s of the ranks is %v, of one process %v", step, p.Name, mean, p.Value)
		}
	}
	compareGradients(t, step, whole, ranks, tol)
	move(whole, whole.params.Grads())
	if err := whole.After(); err != nil {
		t.Fatal(err)
	}
	onRanks(t, ranks, func(_ int, m *Pairs) error {
		move(m, whole.params.Grads())
		return m.After()
	})
	for i, m := range ranks {
		if q := m.Queue(); q != nil {
			compareQueues(t, fmt.Sprintf("step %d, rank %d", step, i), q, whole.Queue())
		}
		copy(m.params.Values(), whole.params.Values()) // running statistics too, to rounding
	}
}

// move is plain gradient descent, with the twins.
func move(m *Pairs, grads []float32) {
	for i, v := range grads {
		m.params.Values()[i] -= .05 * v
	}
	m.UpdateMomentum(.9)
}

// compareGradients compares the sum of the ranks' gradients over their number with those of one process, by name.
func compareGradients(t *testing.T, step int, whole *Pairs, ranks []*Pairs, tol float64) {
	t.Helper()
	largest := func(x []float32) (most float64) {
		for _, v := range x {
			most = max(most, math.Abs(float64(v)))
		}
		return most
	}
	floor := 1e-3 * largest(whole.params.Grads())
	for _, q := range whole.params.List() {
		if q.Locked || !whole.Learnable(q.Name) {
			continue
		}
		want := whole.params.Grad(q)
		scale, worst, sum := max(largest(want), floor), 0., make([]float64, len(want))
		for _, m := range ranks {
			p, _ := m.params.Get(q.Name)
			for i, v := range m.params.Grad(p) {
				sum[i] += float64(v) / float64(len(ranks))
			}
		}
		for i, v := range sum {
			if d := far(v, float64(want[i]), scale); !(d <= worst) {
				worst = d
			}
		}
		if !(worst <= tol) {
			t.Errorf("step %d: gradient of %s is off by %.2g of its largest element %.3g", step, q.Name, worst, largest(want))
		}
	}
}

// compareQueues compares what is in them, to rounding.
func compareQueues(t *testing.T, name string, got, want *Queue) {
	t.Helper()
	if got.Pointer != want.Pointer || got.Filled != want.Filled || !slices.Equal(got.IDs, want.IDs) {
		t.Errorf("%s: the queue is at %d, %d are filled, ids %v; want %d, %d and %v", name, got.Pointer, got.Filled, got.IDs, want.Pointer, want.Filled, want.IDs)
	}
	for _, ring := range [][2][]float32{{got.Image, want.Image}, {got.Text, want.Text}, {got.ImageBackbone, want.ImageBackbone}, {got.TextBackbone, want.TextBackbone}} {
		for i, v := range ring[0] {
			if d := far(float64(v), float64(ring[1][i]), 1); !(d < 1e-5) {
				t.Errorf("%s: value %d of a queue is %v, want %v", name, i, v, ring[1][i])
				break
			}
		}
	}
}

// TestOneProcessExchangesNothing: a step of one process has no exchange in it.
func TestOneProcessExchangesNothing(t *testing.T) {
	for name, x := range rankCases() {
		t.Run(name, func(t *testing.T) {
			whole, ranks := withRanks(t, x)
			count := func(p *Pairs) (n int) {
				for _, n2 := range p.step.machine.Profile().Kinds {
					if strings.Contains(n2.Kind, "of ranks") {
						n++
					}
				}
				return n
			}
			if n := count(whole); n != 0 {
				t.Errorf("%d kinds of exchanges of one process", n)
			}
			if n := count(ranks[0]); n == 0 {
				t.Error("no exchange of two: the test shows nothing")
			}
		})
	}
}

