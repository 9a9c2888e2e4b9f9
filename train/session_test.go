package train

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// bright is a stream whose samples from, from+1, ... to-1 have an infinite pixel,
// so that the loss of their batch is not finite.
type bright struct {
	data.Stream
	from, to uint64
}

func (b bright) Sample(c uint64, row batch.Row) error {
	err := b.Stream.Sample(c, row)
	if c >= b.from && c < b.to {
		row.Floats(batch.Images)[0] = float32(math.Inf(1))
	}
	return err
}

// small returns a session of a small model with every part on, on scenes of which
// the samples from..to-1 are spoilt.
func small(t *testing.T, from, to uint64, sets ...string) *Session {
	t.Helper()
	return check.Get(trySmall(t, from, to, sets...))(t)
}

// sameResumed checks that a session that goes on from a checkpoint of whole, after so many steps, has its bits.
func sameResumed(t *testing.T, whole *Session, steps int, sets ...string) {
	t.Helper()
	ck := whole.save(t, t.TempDir(), steps)
	again := small(t, 0, 0, sets...)
	again.must(t, 0) // its own past must not matter
	check.Get(again.Restore(ck))(t)
	for i := steps; i < steps+3; i++ {
		want, got := whole.must(t, i), again.must(t, i)
		if math.Float64bits(got.Loss) != math.Float64bits(want.Loss) || !slices.Equal(got.Parts, want.Parts) {
			t.Errorf("step %d after a resume: %v, uninterrupted %v", i, got.Loss, want.Loss)
		}
	}
	sameMemory(t, "resumed", again.state(), whole.state())
}

// trySmall is small for settings that a session may refuse.
func trySmall(t *testing.T, from, to uint64, sets ...string) (*Session, error) {
	t.Helper()
	cfg := check.Get(config.Load("../cmd/trainer/testdata/tiny.toml", sets))(t)
	return sessionOf(t, cfg, from, to, nil)
}

// sessionOf returns a session of a configuration on scenes, with a tokenizer of their
// captions where none is given.
func sessionOf(t *testing.T, cfg config.Config, from, to uint64, tok *tokenizer.Tokenizer) (*Session, error) {
	t.Helper()
	return sessionIn(t, cfg, nil, tok, func(s data.Stream) data.Stream { return bright{s, from, to} })
}

// sessionIn is sessionOf for a process of a group, or nil, whose samples are those of wrap.
func sessionIn(t *testing.T, cfg config.Config, g parallel.Group, tok *tokenizer.Tokenizer, wrap func(data.Stream) data.Stream) (*Session, error) {
	t.Helper()
	engine := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: 2}))(t)
	t.Cleanup(engine.Close)
	d := cfg.Data.Scenes
	world, err := scenes.New(scenes.Config{MinObjects: d.MinObjects, MaxObjects: d.MaxObjects, Size: cfg.Model.Image.Size, ValSamples: d.ValSamples, TestSamples: d.TestSamples}, cfg.Run.Seed)
	if err != nil {
		t.Fatal(err)
	}
	if tok == nil {
		if tok, err = tokenizer.Learn(slices.Values(data.SceneCaptions(world, 200, data.CleanALBEF)), cfg.Data.VocabSize); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := data.NewSceneStream(world, d.EpochSamples, data.TrainConfig{Seed: cfg.Run.Seed, Transform: transform.Train{Size: cfg.Model.Image.Size, ScaleMin: 1},
		Text: &data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(cfg, ModelOptions{Engine: engine, Tokenizer: tok, Group: g})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { m.Close() })
	s, err := NewSession(cfg, Options{Engine: engine, Model: m, Stream: wrap(stream), Tokenizer: tok})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { s.Close() })
	return s, nil
}

// pairs is the model under whatever a test has put around it.
func (s *Session) pairs() *model.Trainer {
	if a, ok := s.model.(*averaged); ok {
		return a.System.(*model.Trainer)
	}
	return s.model.(*model.Trainer)
}

func (s *Session) must(t *testing.T, step int) StepResult {
	t.Helper()
	return check.Get(s.Step(t.Context(), step))(t)
}

// memory copies everything that a step changes.
func (s *Session) memory() map[string][]float32 {
	m, v := s.optimizer.Moments()
	p, q := s.model.Params(), s.pairs().Queue()
	out := map[string][]float32{"values": slices.Clone(p.Values()), "m": slices.Clone(m), "v": slices.Clone(v)}
	p.MomentumRuns(func(_ int, twin []float32) { out["twins"] = append(out["twins"], twin...) })
	if q != nil {
		out["image queue"], out["text queue"] = slices.Clone(q.Image), slices.Clone(q.Text)
		out["queue"] = []float32{float32(q.Pointer), float32(q.Filled)}
		for _, id := range q.IDs {
			out["queue ids"] = append(out["queue ids"], float32(id%1000))
		}
	}
	out["steps"] = []float32{float32(s.optimizer.Steps())}
	return out
}

// A step that is not finite changes nothing but the place in the data, whichever
// micro-batch it comes from.
func TestFailedStepChangesNothing(t *testing.T) {
	for _, spoilt := range []uint64{16, 22} { // in the first and in the last micro-batch
		s := small(t, spoilt, spoilt+1, "train.batch_size=4", "train.accumulate_steps=2")
		for i := range 2 {
			s.must(t, i)
		}
		before := s.memory()
		_, err := s.Step(t.Context(), 2)
		var bad *NonFiniteError
		if !errors.As(err, &bad) || bad.Step != 2 {
			t.Fatalf("sample %d: got %v", spoilt, err)
		}
		for name, x := range s.memory() {
			if !slices.Equal(x, before[name]) {
				t.Errorf("sample %d: %s changed", spoilt, name)
			}
		}
		if p := s.loader.Position(); p != 24 {
			t.Errorf("sample %d: position %d, want 24", spoilt, p)
		}
		s.must(t, 3)
		if slices.Equal(s.memory()["values"], before["values"]) {
			t.Error("the next step changed nothing")
		}
	}
}

// The gradient of two micro-batches is the mean of theirs, and so are the loss and
// its parts, where rows do not see other batches.
func TestAccumulatedGradients(t *testing.T) {
	sets := []string{"train.batch_size=4", "train.accumulate_steps=2", "model.text.dropout=0", "momentum.enabled=false", "queue.size=0",
		"objective.distill.alpha=0", "objective.itc.weight=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0"}
	s := small(t, 0, 0, sets...)
	other := small(t, 0, 0, sets...) // the same parameters
	want := make([]float32, len(other.model.Params().Grads()))
	loss := 0.0
	for range 2 {
		b := check.Get(other.loader.Next(t.Context()))(t)
		r := check.Get(other.model.Step(t.Context(), &feed.Step{Batch: b.Batch}))(t)
		loss += r.Loss / 2
		for i, g := range other.model.Params().Grads() {
			want[i] += g / 2
		}
	}
	r := s.must(t, 0)
	if !(math.Abs(r.Loss-loss) <= 1e-6) || len(r.Parts) != 1 || !(math.Abs(r.Parts[0].Value-loss) <= 1e-6) || r.Samples != 8 {
		t.Errorf("loss %v, parts %v, %d samples; the mean is %v", r.Loss, r.Parts, r.Samples, loss)
	}
	norm := 0.0
	for i, g := range s.model.Params().Grads() { // their sum; the update halves it
		if d := float64(g/2 - want[i]); !(math.Abs(d) <= 1e-6) {
			t.Fatalf("gradient %d is %v, want %v", i, g/2, want[i])
		}
		norm += float64(want[i]) * float64(want[i])
	}
	if norm = math.Sqrt(norm); !(math.Abs(r.GradNorm/norm-1) <= 1e-5) {
		t.Errorf("norm %v, want %v", r.GradNorm, norm)
	}
}

// Every micro-batch sees the queue as it was before the step, and all of them enter
// it with the update.
func TestQueueTakesAllMicroBatches(t *testing.T) {
	s := small(t, 0, 0, "train.batch_size=4", "train.accumulate_steps=3")
	for i := range 6 { // 72 rows into a queue of 64
		s.must(t, i)
	}
	if q := s.pairs().Queue(); q.Filled != 64 || q.Pointer != 8 || slices.Contains(q.IDs, int32(model.NoID)) {
		t.Errorf("filled %d, pointer %d", q.Filled, q.Pointer)
	}
}

// save writes a checkpoint of a session after step updates.
func (s *Session) save(t *testing.T, dir string, step int) *checkpoint.Checkpoint {
	t.Helper()
	store := check.Get(checkpoint.NewStore(filepath.Join(dir, "checkpoints"), checkpoint.Retention{}))(t)
	snap, err := s.Snapshot(&Event{Step: step, Elapsed: 90 * time.Second, Values: map[string]float64{"loss": 2, "odd": math.NaN()}})
	if err != nil {
		t.Fatal(err)
	}
	check.OK(t, store.Save(step, snap))
	c := check.Get(checkpoint.Load(dir))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// A session that is restored continues with the bits of the one that was saved; a
// rollback differs in the data, which goes on behind the bad batch.
func TestRestoreAndRollback(t *testing.T) {
	s := small(t, 0, 0)
	for i := range 4 {
		s.must(t, i)
	}
	c := s.save(t, t.TempDir(), 4)
	for i := range 3 {
		s.must(t, 4+i)
	}
	want := s.memory()

	other := small(t, 0, 0)
	other.must(t, 0) // its own past must not matter
	state, err := other.Restore(c)
	if err != nil || state.Step != 4 || other.loader.Position() != 32 || state.Elapsed != 90 || len(state.Values) != 1 || state.Values["loss"] != 2 || len(state.Unread) != 0 {
		t.Fatalf("%v %+v", err, state)
	}
	for i := range 3 {
		other.must(t, 4+i)
	}
	for name, x := range other.memory() {
		if !slices.Equal(x, want[name]) {
			t.Errorf("%s differs", name)
		}
	}

	check.Get(other.Rollback(c))(t)
	if p := other.loader.Position(); p != 56 {
		t.Errorf("position %d after the rollback, want 56", p)
	}
	other.must(t, 4)
	// The last 4 of the 60 samples of an epoch fill no batch and are dropped.
	if p := other.loader.Position(); p != 68 {
		t.Errorf("position %d, want 68", p)
	}

	seed := small(t, 0, 0, "run.seed=8")
	check.Fails(seed.Restore(c))(t, "run.seed: the checkpoint was made with seed 7 (got 8)")
	queue := small(t, 0, 0, "queue.size=32")
	check.Fails(queue.Restore(c))(t, "queue.safetensors")
	width := small(t, 0, 0, "model.head.dim=8")
	var arch *checkpoint.ArchitectureError
	if _, err := width.Restore(c); !errors.As(err, &arch) {
		t.Errorf("another architecture: %v", err)
	}
}

// One bad batch is skipped, or left behind by a rollback, and the run goes on.
func TestRunSurvivesABadBatch(t *testing.T) {
	for _, policy := range []string{"skip", "rollback"} {
		s := small(t, 42, 43) // in the sixth batch
		dir := t.TempDir()
		var last *checkpoint.Checkpoint
		save := Checkpoints(SaveConfig{EverySteps: 3, Save: func(e *Event) error { last = s.save(t, dir, e.Step); return nil }})
		out, err := Run(t.Context(), Config{Total: 9, OnNaN: policy, Rollback: func(context.Context, int, int) (int, error) {
			state, err := s.Rollback(last)
			return state.Step, err
		}}, s, save)
		want := Outcome{Step: 9, Skipped: 1}
		position := uint64(76)    // 9 batches of 8, and 4 samples dropped at the end of an epoch
		if policy == "rollback" { // from step 5 to 3: two good steps and the bad one come on top
			want = Outcome{Step: 9, Rollbacks: 1}
			position = 100
		}
		out.Elapsed = 0
		if err != nil || out != want || s.loader.Position() != position {
			t.Errorf("%s: %v, %+v, position %d", policy, err, out, s.loader.Position())
		}
		if v := s.optimizer.Steps(); policy == "skip" && v != 8 || policy == "rollback" && v != 9 {
			t.Errorf("%s: %d updates", policy, v)
		}
	}
}

// unstaging counts how often a model is to forget the batch that comes next.
type unstaging struct {
	*model.Trainer
	times *int
}

func (u unstaging) Unstage() error {
	*u.times++
	return u.Trainer.Unstage()
}

// TestBadMicroBatchForgetsTheNext: micro-batches behind one whose loss is not finite are read and not computed, so that the one that
// was on its way to a device is not that of the next run.
func TestBadMicroBatchForgetsTheNext(t *testing.T) {
	s := small(t, 34, 35, "train.accumulate_steps=2") // in the fifth batch
	times := 0
	s.model = unstaging{s.pairs(), &times}
	s.must(t, 0)
	s.must(t, 1)
	if times != 0 {
		t.Fatalf("good steps forget %d batches", times)
	}
	if _, err := s.Step(t.Context(), 2); !errors.As(err, new(*NonFiniteError)) || times == 0 {
		t.Errorf("%v, forgot %d batches", err, times)
	}
}

func TestSnapshotRefusesWhatIsNotFinite(t *testing.T) {
	s := small(t, 0, 0)
	s.model.Params().Values()[5] = float32(math.NaN())
	check.Fails(s.Snapshot(&Event{Step: 1}))(t, "not finite: nothing is saved")
}
