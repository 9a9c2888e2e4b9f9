package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
)

// parallelConfig is a small configuration with epochs of 8 steps of 8 samples. Ranks compare their own pairs alone, as
// micro-batches do.
func parallelConfig(t *testing.T, sets ...string) config.Config {
	t.Helper()
	cfg, err := config.Load("../cmd/trainer/testdata/tiny.toml", append([]string{"train.batch_size=8", "data.scenes.epoch_samples=64", "queue.size=24", "parallel.contrast=local", "parallel.negatives=local"}, sets...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// ranksOf returns a session for each of two ranks, of a stream whose samples from, from+1,
// ... to-1 of the whole are spoilt.
func ranksOf(t *testing.T, cfg config.Config, from, to uint64) (sessions []*Session, group []*paralleltest.Rank) {
	t.Helper()
	group = paralleltest.Ranks(2)
	for _, g := range group {
		s := check.Get(sessionIn(t, cfg, g, nil, func(all data.Stream) data.Stream { return bright{all, from, to} }))(t)
		sessions = append(sessions, s)
	}
	return sessions, group
}

// together makes a step on all ranks at once.
func together(t *testing.T, sessions []*Session, step int) ([]StepResult, []error) {
	t.Helper()
	results, errs := make([]StepResult, len(sessions)), make([]error, len(sessions))
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() { results[i], errs[i] = s.Step(t.Context(), step) })
	}
	wg.Wait()
	return results, errs
}

// nextOf reads a batch on all ranks at once.
func nextOf(t *testing.T, sessions []*Session) []*data.Batch {
	t.Helper()
	batches, errs := make([]*data.Batch, len(sessions)), make([]error, len(sessions))
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() { batches[i], errs[i] = s.loader.Next(t.Context()) })
	}
	wg.Wait()
	check.OK(t, errors.Join(errs...))
	return batches
}

// withoutDraws leaves out what is drawn for the whole global batch, of which micro-batches are none: each
// draws for itself.
var withoutDraws = []string{"objective.itm.weight=0", "eval.rerank_top=0", "model.text.dropout=0", "objective.mlm.weight=0"}

// TestTwoRanksAreTwoMicroBatches: a run of two processes has the bits of one process that
// accumulates over two micro-batches, which hold the same rows in the same order: parameters,
// momentum encoder, moments, queue and graphs, with a teacher. Both ranks have the same.
func TestTwoRanksAreTwoMicroBatches(t *testing.T) {
	for name, sets := range map[string][]string{
		"dynamic momentum": {"momentum.rule=dynamic"},
		"cosine":           nil,
		"id":               {"objective.itc.positives=id"},
		"geodesic":         {"objective.itc.score=geodesic", "objective.geodesic.layers=[2, 6]", "objective.geodesic.entries=4", "objective.geodesic.period_steps=4"},
		"clip":             {"model.system=clip", "model.text.fusion_layers=0", "objective.siglip.weight=1", "objective.structure.weight=1"},
	} {
		t.Run(name, func(t *testing.T) {
			sets = append(slices.Clone(withoutDraws), sets...)
			sessions, _ := ranksOf(t, parallelConfig(t, sets...), 0, 0)
			whole, err := sessionOf(t, parallelConfig(t, append(sets, "train.batch_size=4", "train.accumulate_steps=2")...), 0, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if whole.Span() != sessions[0].Span() {
				t.Fatalf("spans %+v and %+v", whole.Span(), sessions[0].Span())
			}
			for step := range 10 { // into the second epoch
				want := whole.must(t, step)
				got, errs := together(t, sessions, step)
				check.OK(t, errors.Join(errs...))
				for i, r := range got {
					if r.Loss != want.Loss || !slices.Equal(r.Parts, want.Parts) && name != "geodesic" || r.Samples != want.Samples {
						t.Errorf("step %d, rank %d: loss %v of %v and %d samples, want %v of %v and %d", step, i, r.Loss, r.Parts, r.Samples, want.Loss, want.Parts, want.Samples)
					}
					if r.GradNorm != want.GradNorm || r.LR != want.LR || r.Temperature != want.Temperature {
						t.Errorf("step %d, rank %d: norm %v, rate %v and temperature %v, want %v, %v and %v", step, i, r.GradNorm, r.LR, r.Temperature, want.GradNorm, want.LR, want.Temperature)
					}
				}
			}
			for i, s := range sessions {
				sameMemory(t, fmt.Sprint("rank ", i), s.memory(), whole.memory())
				if g := s.pairs().Graphs(); g != nil {
					if g.Begun < 0 {
						t.Error("no graph was built: the test shows nothing")
					}
					sameMemory(t, fmt.Sprint("graphs of rank ", i), graphMemory(g), graphMemory(whole.pairs().Graphs()))
				}
			}
		})
	}
}

// TestGradientsAreSummedInTheOrderOfTheRanks: the update of two ranks is by the sum of what a single process computes for the batch of each rank.
func TestGradientsAreSummedInTheOrderOfTheRanks(t *testing.T) {
	cfg := parallelConfig(t, withoutDraws...)
	sessions, _ := ranksOf(t, cfg, 0, 0)
	sources, _ := ranksOf(t, cfg, 0, 0) // the same batches
	alone, err := sessionOf(t, parallelConfig(t, append(slices.Clone(withoutDraws), "train.batch_size=4")...), 0, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []float32
	losses := make([]float64, 2)
	batches := nextOf(t, sources)
	for i := range sources {
		b := batches[i]
		r := check.Get(alone.model.Step(t.Context(), &feed.Step{Batch: b.Batch, PerEpoch: 8, Rank: i, Ranks: 2}))(t)
		losses[i] = r.Loss
		if i == 0 {
			want = slices.Clone(alone.model.Params().Grads())
			continue
		}
		for k, g := range alone.model.Params().Grads() {
			want[k] += g
		}
	}
	got, errs := together(t, sessions, 0)
	check.OK(t, errors.Join(errs...))
	for i, s := range sessions {
		if want := .5*losses[0] + .5*losses[1]; got[i].Loss != want {
			t.Errorf("rank %d: loss %v, want the mean %v of %v", i, got[i].Loss, want, losses)
		}
		if !slices.Equal(s.model.Params().Grads(), want) {
			t.Errorf("rank %d: other gradients than the sum of both", i)
		}
	}
}

// TestTheQueueTakesTheKeysOfAllRanks: those of rank 0 and then those of rank 1, as a process
// with the whole batch lets them in, which has the same features but for rounding.
func TestTheQueueTakesTheKeysOfAllRanks(t *testing.T) {
	sets := []string{"model.text.dropout=0"}
	sessions, _ := ranksOf(t, parallelConfig(t, sets...), 0, 0)
	whole := check.Get(sessionOf(t, parallelConfig(t, sets...), 0, 0, nil))(t)
	whole.must(t, 0)
	if _, errs := together(t, sessions, 0); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	want := whole.pairs().Queue()
	for i, s := range sessions {
		q := s.pairs().Queue()
		if q.Filled != 8 || q.Pointer != 8 || !slices.Equal(q.IDs, want.IDs) {
			t.Errorf("rank %d: %d filled, pointer %d, ids %v, want %v", i, q.Filled, q.Pointer, q.IDs, want.IDs)
		}
		for _, ring := range [][2][]float32{{q.Image, want.Image}, {q.Text, want.Text}} {
			for k, v := range ring[0][:8*16] {
				if d := v - ring[1][k]; !(d < 1e-5 && d > -1e-5) {
					t.Fatalf("rank %d: value %d of the queue is %v, want %v", i, k, v, ring[1][k])
				}
			}
		}
	}
}

// TestOneRankThatIsNotFinite: all ranks leave out the update together, whoever met the
// number, and go on with the next: with the losses over all pairs each has one.
func TestOneRankThatIsNotFinite(t *testing.T) {
	for _, sets := range [][]string{nil, {"compute.check_nan=true"}, {"train.accumulate_steps=2", "train.batch_size=4"}} {
		for spoilt, who := range map[uint64]int{17: 0, 22: 1} { // of rows 16 to 23
			oneRankIsNotFinite(t, sets, spoilt, who)
		}
	}
	sessions, _ := ranksOf(t, parallelConfig(t, append([]string{"compute.check_nan=true"}, globally...)...), 1, 2)
	for i, err := range second(together(t, sessions, 0)) {
		if !errors.As(err, new(*NonFiniteError)) || !strings.Contains(err.Error(), "rank 0: ") {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

// second is the errors of together.
func second(_ []StepResult, errs []error) []error { return errs }

// oneRankIsNotFinite has a sample of the third step of 8 spoilt, which is of rank who.
func oneRankIsNotFinite(t *testing.T, sets []string, spoilt uint64, who int) {
	t.Helper()
	sessions, _ := ranksOf(t, parallelConfig(t, sets...), spoilt, spoilt+1)
	for step := range 2 {
		if _, errs := together(t, sessions, step); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
	}
	before := sessions[0].memory()
	_, errs := together(t, sessions, 2)
	for i, err := range errs {
		var bad *NonFiniteError
		if !errors.As(err, &bad) || bad.Step != 2 || !strings.Contains(err.Error(), fmt.Sprintf("step 2: rank %d: ", who)) || err.Error() != errs[0].Error() {
			t.Errorf("sample %d, rank %d: got %v", spoilt, i, err)
		}
	}
	for i, s := range sessions {
		sameMemory(t, fmt.Sprint("after the step, rank ", i), s.memory(), before)
		if p := s.loader.Position(); p != 24 {
			t.Errorf("rank %d is at sample %d, want 24", i, p)
		}
	}
	if _, errs := together(t, sessions, 3); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	if slices.Equal(sessions[0].memory()["values"], before["values"]) {
		t.Error("the next step changed nothing")
	}
	sameMemory(t, "after the next step", sessions[1].memory(), sessions[0].memory())
}

// TestAnExchangeThatFails is the error of the step, and nothing of it is kept.
func TestAnExchangeThatFails(t *testing.T) {
	sessions, group := ranksOf(t, parallelConfig(t), 0, 0)
	before := sessions[0].memory()
	lost := errors.New("the line is dead")
	for _, g := range group {
		g.Fail = lost
	}
	_, errs := together(t, sessions, 0)
	for i, err := range errs {
		if !errors.Is(err, lost) {
			t.Errorf("rank %d: got %v", i, err)
		}
		sameMemory(t, fmt.Sprint("rank ", i), sessions[i].memory(), before)
	}
}

// TestASessionIsOfTheGroupOfItsModel: sums go to the processes that share the queue, also
// where something stands around the model. A model alone is a group of one.
func TestASessionIsOfTheGroupOfItsModel(t *testing.T) {
	sessions, group := ranksOf(t, parallelConfig(t), 0, 0)
	for i, s := range sessions {
		if g := s.pairs().Group(); g != parallel.Group(group[i]) || s.group != g || s.feed.Rank != i || s.feed.Ranks != 2 {
			t.Errorf("rank %d: a session of %v, rank %d of %d, around a model of %v", i, s.group, s.feed.Rank, s.feed.Ranks, g)
		}
		if g := (&averaged{System: s.model}).Group(); g != parallel.Group(group[i]) {
			t.Errorf("rank %d: a system around the model is of %v", i, g)
		}
	}
	alone := check.Get(sessionOf(t, parallelConfig(t), 0, 0, nil))(t)
	if alone.group != (parallel.Single{}) || alone.feed.Ranks != 1 {
		t.Errorf("alone a session is of %v, one of %d", alone.group, alone.feed.Ranks)
	}
}
