package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks/migration"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// settings is the configuration of testdata into a folder.
func settings(t *testing.T, dir string, sets ...string) config.Config {
	t.Helper()
	return check.Get(config.Load("testdata/scenes.toml", append([]string{"run.out=" + dir}, sets...)))(t)
}

// recorder keeps what a run tells it.
type recorder struct {
	lines  []string
	begin  [2]int // start and total of the steps
	steps  []int
	phases []string
	ended  int
	after  func(step int)
}

func (r *recorder) Say(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Steps(start, total int, _ time.Duration) train.Hook {
	r.begin = [2]int{start, total}
	return train.Hook{Name: "recorder", Stage: train.StageLog, After: func(_ context.Context, e *train.Event) error {
		r.steps = append(r.steps, e.Step)
		if r.after != nil {
			r.after(e.Step)
		}
		return nil
	}}
}

func (r *recorder) Phase(name string, done, total int) {
	if done == total {
		r.phases = append(r.phases, name)
	}
}

func (r *recorder) PhasesDone() { r.ended++ }

// trained trains a run to its end.
func trained(t *testing.T, cfg config.Config, o Options) Result {
	t.Helper()
	r := check.Get(New(t.Context(), cfg, o))(t)
	result := check.Get(r.Train(t.Context()))(t)
	check.Fails(r.Train(t.Context()))(t, "called before")
	check.OK(t, r.Close())
	return result
}

func TestReporter(t *testing.T) {
	dir := t.TempDir()
	var seen recorder
	result := trained(t, settings(t, dir, "train.max_steps=5"), Options{Reporter: &seen})
	if seen.begin != [2]int{0, 5} || !slices.Equal(seen.steps, []int{1, 2, 3, 4, 5}) {
		t.Errorf("steps from %v: %v", seen.begin, seen.steps)
	}
	all := strings.Join(seen.lines, "\n")
	for _, want := range []string{"scenes: ", "run folder " + dir, "start to the end of the first step", "step 4  val: image to text / text to image: cosine R@1"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %s", want, all)
		}
	}
	// Evaluations at 4 and 5, each of texts and images, and those of the page.
	if want := []string{"encoding texts", "encoding images", "encoding texts", "encoding images", "report: encoding images", "report: encoding texts"}; !slices.Equal(seen.phases, want) || seen.ended != 3 {
		t.Errorf("phases %v, ended %d times", seen.phases, seen.ended)
	}
	if result.Folder != dir || result.Split != "val" || result.Scores.Task() != retrieval.Name || result.Scores.Values()["rsum"] != result.Scores.(retrieval.Scores).First.Map()["rsum"] {
		t.Errorf("result %+v", result)
	}

	// The same folder goes on, and tells what has changed.
	seen = recorder{}
	trained(t, settings(t, dir, "train.max_steps=7", "optimizer.lr=1e-5"), Options{Reporter: &seen, Several: true})
	if seen.begin != [2]int{5, 7} || !slices.Equal(seen.steps, []int{6, 7}) {
		t.Errorf("steps from %v: %v", seen.begin, seen.steps)
	}
	all = strings.Join(seen.lines, "\n")
	for _, want := range []string{"changed since the checkpoint: optimizer.lr = 1e-05", "changed since the checkpoint: train.max_steps = 7 (was 5)", "going on from step 5 of " + dir} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %s", want, all)
		}
	}
	if strings.Contains(all, "start to the end") || slices.Contains(seen.phases, "report: encoding images") {
		t.Errorf("one of several runs tells %s and draws %v", all, seen.phases)
	}
}

// TestInterrupted stops after a step; the same call goes on and ends with the numbers of a
// run that was not stopped.
func TestInterrupted(t *testing.T) {
	whole := trained(t, settings(t, t.TempDir()), Options{})
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	r := check.Get(New(t.Context(), settings(t, dir), Options{Reporter: &recorder{after: func(step int) {
		if step == 3 {
			cancel()
		}
	}}}))(t)
	if _, err := r.Train(ctx); !errors.Is(err, train.ErrInterrupted) {
		t.Fatalf("error %v", err)
	}
	check.OK(t, r.Close())
	var seen recorder
	rest := trained(t, settings(t, dir), Options{Reporter: &seen})
	if seen.begin[0] != 4 && seen.begin[0] != 3 {
		t.Errorf("went on from step %d", seen.begin[0])
	}
	if a, b := whole.Scores.(retrieval.Scores), rest.Scores.(retrieval.Scores); a.First != b.First {
		t.Errorf("in pieces %+v, whole %+v", b.First, a.First)
	}
}

// TestFolderIsFreed checks that a run holds its folder while it is open, and that one that
// cannot be opened holds nothing.
func TestFolderIsFreed(t *testing.T) {
	dir := t.TempDir()
	r := check.Get(New(t.Context(), settings(t, dir), Options{}))(t)
	check.Fails(New(t.Context(), settings(t, dir), Options{}))(t, "another process writes to "+dir)
	check.OK(t, r.Close())
	if err := r.Close(); err != nil { // a second time does nothing
		t.Fatal(err)
	}
	check.Fails(New(t.Context(), settings(t, dir, "init.checkpoint="+t.TempDir()), Options{}))(t, "init.checkpoint")
	trained(t, settings(t, dir, "train.max_steps=1"), Options{})
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	cfg := settings(t, dir)
	cfg.Train.BatchSize = 0
	var problems config.Errors
	if _, err := New(t.Context(), cfg, Options{}); !errors.As(err, &problems) || !strings.Contains(err.Error(), "train.batch_size") {
		t.Errorf("error %v", err)
	}
	trained(t, settings(t, dir, "train.max_steps=1"), Options{})
	if _, err := New(t.Context(), settings(t, dir, "model.head.dim=4"), Options{}); !errors.As(err, &problems) || problems[0].Path != "model.head.dim" {
		t.Errorf("error %v", err)
	}
	// A run that goes on with another run's checkpoint would overwrite this one.
	other := t.TempDir()
	trained(t, settings(t, other, "train.max_steps=1"), Options{})
	var argument *console.ArgumentError
	if _, err := New(t.Context(), settings(t, dir), Options{Resume: other}); !errors.As(err, &argument) || !strings.Contains(err.Error(), "holds another run") {
		t.Errorf("error %v", err)
	}
	if err := CheckTask("naming"); !errors.As(err, &argument) {
		t.Errorf("error %v", err)
	}
	if r, err := New(t.Context(), settings(t, dir), Options{Resume: Never}); err != nil || r.Folder() != dir+"-2" || r.Config().Run.Out != dir+"-2" {
		t.Errorf("%v, error %v", r, err)
	} else {
		r.Close()
	}
}

func TestDryRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	p := check.Get(DryRun(t.Context(), settings(t, dir), Options{}))(t)
	if p.Steps != 8 || p.StepsAnEpoch != 8 || p.Samples != 8 || p.Parameters == 0 || p.Trainable != p.Parameters || p.StepSeconds <= 0 || p.Graphs || p.QueueMB != 0 {
		t.Errorf("plan %+v", p)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("a dry run made %s", dir)
	}
}

func TestTrained(t *testing.T) {
	dir := t.TempDir()
	want := trained(t, settings(t, dir), Options{})
	var log bytes.Buffer
	o := check.Get(Open(dir, OpenOptions{Set: []string{"eval.max_images=12"}, Log: &log}))(t)
	if o.Folder() != dir || o.Model != nil || o.Config.Train.BatchSize != 8 || o.Config.Eval.MaxImages != 12 {
		t.Errorf("opened %+v", o)
	}
	if s, err := o.Evaluate(t.Context(), "", "", nil); err != nil || s.Size() != "12 images, 12 texts" {
		t.Errorf("%v, error %v", s, err)
	}
	m := o.Model
	if o.Model != m {
		t.Error("the model was loaded twice")
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	o = check.Get(Open(dir, OpenOptions{}))(t)
	defer o.Close()
	if s, err := o.Evaluate(t.Context(), retrieval.Name, "val", nil); err != nil || s.(retrieval.Scores).First != want.Scores.(retrieval.Scores).First {
		t.Errorf("%v, error %v, want %v", s, err, want.Scores)
	}
	if _, err := Open(dir, OpenOptions{Set: []string{"model.head.dim=4"}}); err == nil || !strings.Contains(err.Error(), "the checkpoint "+o.Checkpoint.Path+" was made with 8") {
		t.Errorf("error %v", err)
	}
	if i, err := Inspect(dir, "optimizer"); err != nil || i.Step != 8 || len(i.Tensors) == 0 || !strings.Contains(i.ConfigText, "scenes") {
		t.Errorf("%+v, error %v", i, err)
	}
	if _, err := os.Stat(filepath.Join(dir, runlog.ReportFile)); err != nil {
		t.Error(err)
	}
}

// A cancelled context ends the opening of a run, which leaves nothing behind.
func TestOpeningIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "run")
	if r, err := New(ctx, settings(t, dir), Options{}); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("got %v, %v", r, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("there is a run folder")
	}
}

// Steps that are not saved keep the process from ending at a signal.
func TestUnsavedStepsAreHeld(t *testing.T) {
	held := map[int]bool{}
	trained(t, settings(t, t.TempDir(), "train.max_steps=4", "train.save_every_steps=2", "train.eval_every_steps=0"), Options{Several: true,
		Reporter: &recorder{after: func(step int) { held[step] = process.Held() }}})
	if want := map[int]bool{1: true, 2: false, 3: true, 4: false}; !maps.Equal(held, want) || process.Held() {
		t.Errorf("held after steps %v, at the end %t", held, process.Held())
	}
}

// TestFitTellsItsRows: a fit shows how many rows it has read, and ends what it shows.
func TestFitTellsItsRows(t *testing.T) {
	dir := t.TempDir()
	for _, side := range []string{"image", "text"} {
		writeFeatures(t, filepath.Join(dir, side+".safetensors"), watchEvery, 4)
	}
	cfg, err := config.Parse("align.toml", nil, []string{"model.system=align", "data.kind=pairs", "data.root=" + dir, "data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors",
		"data.pairs.val_samples=0", "data.pairs.test_samples=0", "run.out=" + filepath.Join(dir, "run"), "compute.backend=builtin", "compute.threads=2"})
	if err != nil {
		t.Fatal(err)
	}
	var seen recorder
	result := trained(t, cfg, Options{Reporter: &seen})
	if result.Scores != nil {
		t.Errorf("there is nothing to evaluate on: %v", result.Scores)
	}
	if !slices.Contains(seen.phases, "fitting: reading pairs") || seen.ended == 0 {
		t.Errorf("phases %v, ended %d times", seen.phases, seen.ended)
	}
}

// stopping is a Reporter that cancels a context when a fit tells what it has read.
type stopping struct {
	recorder
	cancel func()
}

func (s *stopping) Phase(name string, done, total int) {
	if s.cancel != nil {
		s.cancel()
	}
}

// TestFitInterrupted: a fit that is interrupted saves nothing, and the same run fits anew.
func TestFitInterrupted(t *testing.T) {
	dir := t.TempDir()
	for _, side := range []string{"image", "text"} {
		writeFeatures(t, filepath.Join(dir, side+".safetensors"), watchEvery+100, 4)
	}
	cfg, err := config.Parse("align.toml", nil, []string{"model.system=align", "data.kind=pairs", "data.root=" + dir, "data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors",
		"data.pairs.val_samples=0", "data.pairs.test_samples=50", "eval.split=test", "run.out=" + filepath.Join(dir, "run"), "compute.backend=builtin", "compute.threads=2"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := check.Get(New(ctx, cfg, Options{Reporter: &stopping{cancel: cancel}}))(t)
	if _, err := r.Train(ctx); !errors.Is(err, train.ErrInterrupted) {
		t.Errorf("%v, want %v", err, train.ErrInterrupted)
	}
	check.OK(t, r.Close())
	if _, err := checkpoint.Load(filepath.Join(dir, "run")); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("%v, want no checkpoint", err)
	}
	result := trained(t, cfg, Options{Reporter: &stopping{}})
	if result.Scores == nil || len(result.Beside) != 1 || result.Beside[0].Task() != migration.NeighboursName {
		t.Errorf("the run that goes on: %+v", result)
	}
}

// TestFilesAreGivenBack: a run that is closed has none of its data open or mapped into memory: runs of one process that follow it, as those
// of an ablation, do not count it as theirs.
func TestFilesAreGivenBack(t *testing.T) {
	dir := kindsData(t)
	open := func() (list []string) {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip("no /proc/self/maps")
		}
		for line := range strings.Lines(string(maps)) {
			if i := strings.Index(line, dir); i >= 0 {
				list = append(list, "map "+line[i:])
			}
		}
		links := check.Get(filepath.Glob("/proc/self/fd/*"))(t)
		for _, l := range links {
			if name, err := os.Readlink(l); err == nil && strings.HasPrefix(name, dir) {
				list = append(list, "file "+name)
			}
		}
		return list
	}
	regionFiles(t, dir, 5)
	cache := "data.cache_dir=" + filepath.Join(dir, "cache")
	for name, c := range map[string]struct {
		base string
		sets []string
	}{
		"stored features": {"../configs/heads.toml", []string{"data.pairs.image=image.npy", "data.pairs.text=text.npy", "data.pairs.val_samples=10", "data.pairs.test_samples=0", "model.heads.hidden=12", "model.head.dim=8", "data.max_bad_share=0.3",
			"objective.geometric.weight=1", "objective.geometric.neighbours=4", "train.max_epochs=0", "schedule.warmup_percent=0", cache}},
		"an alignment": {"../configs/heads.toml", []string{"data.pairs.image=text.npy", "data.pairs.text=text.npy", "data.pairs.val_samples=10", "data.pairs.test_samples=0", "model.heads.hidden=12", "model.head.dim=8",
			"objective.klot.weight=1", "objective.klot.rows=4", "train.max_epochs=0", "schedule.warmup_percent=0"}},
		"table":   {"testdata/scenes.toml", []string{"data.kind=csv", "data.csv.train_files=table.csv", "data.csv.val_files=good.csv", "data.max_bad_share=0.3"}},
		"regions": {"testdata/scenes.toml", append(slices.Clone(host), "data.regions.test=", "data.vocab_min_count=1")},
	} {
		for range 2 { // neighbours are found, and then read
			cfg, err := config.Load(c.base, append(slices.Clone(c.sets), "data.root="+dir, "run.out="+t.TempDir(), "train.max_steps=2", "train.batch_size=4"))
			if err != nil {
				t.Fatal(name, err)
			}
			r, err := New(t.Context(), cfg, Options{})
			if err != nil {
				t.Fatal(name, err)
			}
			if _, err := r.Train(t.Context()); err != nil {
				t.Error(name, err)
			}
			if len(open()) == 0 {
				t.Errorf("%s: a run has nothing open", name)
			}
			if err := r.Close(); err != nil {
				t.Error(name, err)
			}
			if left := open(); left != nil {
				t.Errorf("%s: left open: %q", name, left)
			}
		}
	}
}
