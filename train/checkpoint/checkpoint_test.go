package checkpoint

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/state"
)

// counters are those of the part run of the tests.
type counters struct {
	Seed  uint64   `json:"seed"`
	Loss  float64  `json:"loss"`
	Units []string `json:"units"`
}

// weights are the values of a/weight at a step.
func weights(step int) []float32 {
	w := make([]float32, 30000) // more than one write buffer
	for i := range w {
		w[i] = float32(math.Sin(float64(i + step)))
	}
	return w
}

// content lists parts that depend on step.
func content(step int) []state.Part {
	return []state.Part{
		state.Values{Name: "run", Numbers: &counters{Seed: math.MaxUint64, Loss: 0.1 + 0.2, Units: []string{"a"}}},
		state.Values{Name: "model", Memory: []state.Tensor{{Name: "a/weight", Shape: []int{3, 10000}, Data: weights(step)}, {Name: "temperature", Shape: nil, Data: []float32{0.07}}}},
		state.Values{Name: "queue", Memory: []state.Tensor{{Name: "ids", Shape: []int{2}, Data: []int64{int64(step), -1}}, {Name: "image", Shape: []int{2, 1}, Data: []float32{1, 2}}}},
	}
}

// take is Take, which must succeed.
func take(parts []state.Part) Snapshot {
	s, err := Take(parts)
	if err != nil {
		panic(err)
	}
	return s
}

// snapshot returns a checkpoint's content that depends on step.
func snapshot(step int) Snapshot {
	s := take(content(step))
	s.Files = map[string][]byte{"vocab.txt": []byte("[PAD]\n")}
	return s
}

func newStore(t *testing.T, dir string, keep Retention) *Store {
	t.Helper()
	return check.Get(NewStore(dir, keep))(t)
}

func save(t *testing.T, s *Store, steps ...int) {
	t.Helper()
	for _, step := range steps {
		check.OK(t, s.Save(step, snapshot(step)))
	}
}

func load(t *testing.T, path string) *Checkpoint {
	t.Helper()
	c := check.Get(Load(path))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// names lists the folder dir.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries := check.Get(os.ReadDir(dir))(t)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	run := t.TempDir()
	dir := filepath.Join(run, "checkpoints")
	s := newStore(t, dir, Retention{})
	save(t, s, 100, 200)
	for _, path := range []string{run, dir, filepath.Join(dir, "step-00000200")} {
		c := load(t, path)
		if c.Step != 200 || c.Notice != "" || c.Metric != nil {
			t.Errorf("%s: step %d, notice %q", path, c.Step, c.Notice)
		}
		got := make([]float32, 30000)
		check.OK(t, c.ReadFloat32("model", "a/weight", []int{3, 10000}, got))
		if !reflect.DeepEqual(got, weights(200)) {
			t.Error("weights differ")
		}
		ids := make([]int64, 2)
		if err := c.ReadInt64("queue", "ids", []int{2}, ids); err != nil || ids[0] != 200 || ids[1] != -1 {
			t.Errorf("ids: got %v, %v", ids, err)
		}
		var run counters
		if err := c.Counters("run", &run); err != nil ||
			!reflect.DeepEqual(run, counters{Seed: math.MaxUint64, Loss: 0.1 + 0.2, Units: []string{"a"}}) {
			t.Errorf("counters: got %+v, %v", run, err)
		}
		if b, err := c.File("vocab.txt"); err != nil || string(b) != "[PAD]\n" {
			t.Errorf("file: got %q, %v", b, err)
		}
		if c.Has("momentum") || !c.Has("queue") {
			t.Error("wrong groups")
		}
	}
	if c := load(t, filepath.Join(dir, "step-00000100")); c.Step != 100 {
		t.Errorf("got step %d, want 100", c.Step)
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	save(t, newStore(t, dir, Retention{}), 5)
	c := load(t, dir)
	for want, err := range map[string]error{
		"has shape [3 10000], want [10000 3]": c.ReadFloat32("model", "a/weight", []int{10000, 3},
			make([]float32, 30000)),
		`no tensor "b"`:                 c.ReadFloat32("model", "b", nil, make([]float32, 1)),
		"holds no momentum.safetensors": c.ReadFloat32("momentum", "b", nil, make([]float32, 1)),
		"not an integer type":           c.ReadInt64("model", "temperature", nil, make([]int64, 1)),
		"no such folder":                loadError(filepath.Join(dir, "none")),
		"give the step folder":          loadError(filepath.Join(dir, "latest")),
		"no complete step folder":       loadError(t.TempDir()),
		`no file "merges.txt"`:          second(c.File("merges.txt")),
		`file name "state.json" is reserved`: newStore(t, dir, Retention{}).Save(6,
			Snapshot{Files: map[string][]byte{"state.json": nil}}),
		`file name "../x" is reserved, used`: newStore(t, dir, Retention{}).Save(6,
			Snapshot{Files: map[string][]byte{"../x": nil}}),
		`tensor "x": shape [2] needs 2 elemen`: newStore(t, dir, Retention{}).Save(6,
			take([]state.Part{state.Values{Name: "model",
				Memory: []state.Tensor{{Name: "x", Shape: []int{2}, Data: []float32{1}}}}})),
	} {
		check.Error(t, err, want)
	}
	if !errors.Is(loadError(t.TempDir()), ErrNone) {
		t.Error("an empty folder is not ErrNone")
	}
	if got := names(t, dir); !reflect.DeepEqual(got, []string{"latest", "step-00000005"}) {
		t.Errorf("refused saves left %v", got)
	}
}

func loadError(path string) error { return second(Load(path)) }

func second[T any](_ T, err error) error { return err }

func TestFallbackWhenLatestIsUnusable(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"missing": func(dir string) error { return os.Remove(filepath.Join(dir, "latest")) },
		"garbage": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "latest"), []byte("\x00\x00"),
				0o666)
		},
		"elsewhere": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "latest"), []byte("step-00000999"), 0o666)
		},
		"truncated": func(dir string) error {
			return os.Truncate(filepath.Join(dir, "step-00000030/model.safetensors"),
				500)
		},
		"no state": func(dir string) error { return os.Remove(filepath.Join(dir, "step-00000030/state.json")) },
	} {
		dir := t.TempDir()
		save(t, newStore(t, dir, Retention{}), 10, 20, 30)
		check.OK(t, damage(dir))
		want := 30
		if name == "truncated" || name == "no state" {
			want = 20
		}
		c := load(t, dir)
		if c.Step != want || !strings.Contains(c.Notice, "taking the newest complete checkpoint") {
			t.Errorf("%s: step %d, notice %q, want step %d", name, c.Step, c.Notice, want)
		}
	}
}

func TestDamagedStepFolderNamedDirectly(t *testing.T) {
	dir := t.TempDir()
	save(t, newStore(t, dir, Retention{}), 10)
	step := filepath.Join(dir, "step-00000010")
	check.OK(t, os.Truncate(filepath.Join(step, "model.safetensors"), 500))
	check.Error(t, loadError(step), "model.safetensors has 500 bytes, want ")
}

func TestAnotherArchitecture(t *testing.T) {
	dir := t.TempDir()
	save(t, newStore(t, dir, Retention{}), 10)
	c := load(t, dir)
	if err := c.Check("model", []Param{{"temperature", nil}, {"a/weight", []int{3, 10000}}}); err != nil {
		t.Errorf("the same architecture: %v", err)
	}
	params := []Param{{"a/weight", []int{4, 10000}}}
	for _, n := range []string{"b", "c", "d", "e", "f"} {
		params = append(params, Param{n, []int{2}})
	}
	err := c.Check("model", params)
	var e *ArchitectureError
	if !errors.As(err, &e) || e.Missing != 5 || e.Extra != 1 || e.Shapes != 1 || len(e.Differences) != 7 {
		t.Fatalf("got %#v", err)
	}
	want := "checkpoint: this checkpoint is of another architecture: " + c.Path +
		": of the model's 6 parameters 5 are missing and 1 have another shape, 1 extra ones:" +
		" a/weight is [3 10000] in the checkpoint, [4 10000] in the model; b [2] is missing; c [2] is missing; d [2] is missing; e [2] is missing; and 2 more;" +
		" use the config.toml of the run that wrote it, or another checkpoint"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

// A checkpoint says of which evaluation its metric is, from the save on or later.
func TestMetricName(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Retention{})
	save(t, s, 10)
	for _, want := range []Metric{{"eval/retrieval/first/r_mean", 93.25}, {"eval/probe/top1", 0}} {
		check.OK(t, s.SetMetric(10, want))
		if c := load(t, dir); c.Metric == nil || *c.Metric != want {
			t.Errorf("got %v, want %v", c.Metric, want)
		}
	}
	check.OK(t, s.SetMetric(10, Metric{"m", math.Inf(1)}))
	if c := load(t, dir); c.Metric != nil {
		t.Errorf("got %v of a number that is not finite", c.Metric)
	}
	snap := check.Get(Take(nil))(t)
	snap.Metric = &Metric{"m", 3}
	check.OK(t, s.Save(20, snap))
	if c := load(t, dir); c.Metric == nil || *c.Metric != *snap.Metric {
		t.Errorf("got %v", c.Metric)
	}
}

func TestRetention(t *testing.T) {
	for _, c := range []struct {
		name string
		keep Retention
		want []int
	}{
		{"all", Retention{}, []int{10, 20, 30, 40, 50}},
		{"last", Retention{Last: 2}, []int{40, 50}},
		{"best", Retention{Last: 1, Best: 2}, []int{10, 30, 50}},
		{"every", Retention{Last: 1, EverySteps: 20}, []int{20, 40, 50}},
		{"best of few", Retention{Last: 1, Best: 9}, []int{10, 20, 30, 50}},
	} {
		dir := t.TempDir()
		s := newStore(t, dir, c.keep)
		save(t, s, 10, 20, 30, 40, 50)
		// 40 and 50 have no usable metric; 10 ties with 30.
		for step, metric := range map[int]float64{10: 7, 20: 1, 30: 7, 40: math.NaN()} {
			check.OK(t, s.SetMetric(step, Metric{Value: metric}))
		}
		removed := check.Get(s.Prune())(t)
		got := steps(t, dir)
		if !reflect.DeepEqual(got, c.want) || len(removed) != 5-len(c.want) {
			t.Errorf("%s: kept %v, removed %v, want %v", c.name, got, removed, c.want)
		}
		if got := names(t, dir); len(got) != len(c.want)+1 {
			t.Errorf("%s: leftovers in %v", c.name, got)
		}
	}
}

// steps of the checkpoints of a folder.
func steps(t *testing.T, dir string) (list []int) {
	t.Helper()
	entries := check.Get(List(dir))(t)
	for _, e := range entries {
		list = append(list, e.Step)
	}
	return list
}

// TestBestOfOneRule: of a run that goes on with another train.keep_best_by the numbers of the rule before are not
// compared with the new ones; those of earlier versions, which name no rule, are.
func TestBestOfOneRule(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		rule   string
		step   int
		metric float64
		want   []int // kept
	}{
		{"", 10, 60, []int{10}}, {"better", 20, 50, []int{10, 20}}, {"better", 30, 70, []int{30}},
		{"eval/sts/stsb/spearman", 40, 4, []int{40}}, {"eval/sts/stsb/spearman", 50, 3, []int{40, 50}},
	} {
		s := newStore(t, dir, Retention{Last: 1, Best: 1, BestBy: c.rule})
		save(t, s, c.step)
		check.OK(t, s.SetMetric(c.step, Metric{Value: c.metric}))
		check.Get(s.Prune())(t)
		got := steps(t, dir)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("by %q at step %d: kept %v, want %v", c.rule, c.step, got, c.want)
		}
	}
}

// A run that went on from step 20 must not lose its new checkpoints to the
// abandoned ones with higher steps.
func TestRetentionAfterGoingBack(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Retention{Last: 1})
	save(t, s, 20, 90, 25)
	if removed, err := s.Prune(); err != nil || !reflect.DeepEqual(removed, []int{20}) {
		t.Errorf("removed %v, %v, want [20]", removed, err)
	}
	if c := load(t, dir); c.Step != 25 {
		t.Errorf("got step %d, want 25", c.Step)
	}
}

// TestSavedAgain: a step that is saved anew replaces the one before and leaves nothing of it, or where it cannot be
// made the newest leaves that as it was.
func TestSavedAgain(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Retention{})
	put := func(content int) error { return s.Save(10, snapshot(content)) }
	has := func(content int) {
		t.Helper()
		got := make([]float32, 30000)
		if err := load(t, filepath.Join(dir, folderName(10))).ReadFloat32("model", "a/weight", []int{3, 10000},
			got); err != nil || got[1] != weights(content)[1] {
			t.Errorf("%v: not the content %d", err, content)
		}
		if left, want := names(t, dir), []string{"latest", folderName(10)}; !reflect.DeepEqual(left, want) {
			t.Errorf("the folder has %v, want %v", left, want)
		}
	}
	for content := range 3 {
		check.OK(t, put(content))
		has(content)
	}
	latest := filepath.Join(dir, latestName)
	check.OK(t, errors.Join(os.Remove(latest), os.MkdirAll(filepath.Join(latest, "in the way"), 0o777)))
	if err := put(7); err == nil {
		t.Error("a save that cannot move latest must fail")
	}
	has(2)
}
