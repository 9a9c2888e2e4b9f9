package checkpoint

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint/checkpointtest"
)

// gauge is a part with everything that a part may have.
type gauge struct {
	name    string
	version int
	count   struct {
		Rows int   `json:"rows"`
		Seen int   `json:"seen"`
		Tags []int `json:"tags,omitempty"`
	}
	mean     []float32
	owner    []int32
	calls    []string
	infinite bool
	refuse   error // of CheckCounters
}

func newGauge() *gauge {
	g := &gauge{name: "gauge", version: 1, mean: []float32{1, 2}, owner: []int32{3, -4}}
	g.count.Rows, g.count.Seen, g.count.Tags = 2, 7, []int{5}
	return g
}

func (g *gauge) StateName() string  { return g.name }
func (g *gauge) StateVersion() int  { return g.version }
func (g *gauge) Counters() any      { return &g.count }
func (g *gauge) PrepareSave() error { g.calls = append(g.calls, "prepare"); return g.refuse }
func (g *gauge) Restored() error    { g.calls = append(g.calls, "restored"); return nil }
func (g *gauge) CheckCounters() error {
	g.calls = append(g.calls, "check")
	return g.refuse
}
func (g *gauge) Tensors() []state.Tensor {
	return []state.Tensor{
		{Name: "mean", Shape: []int{len(g.mean)}, Data: g.mean, Infinite: g.infinite},
		{Name: "owner", Shape: []int{len(g.owner)}, Data: g.owner},
	}
}

// later is a gauge that a checkpoint may lack.
type later struct{ *gauge }

func (l later) Absent() error { l.calls = append(l.calls, "absent"); return nil }

// exact is a gauge whose tensors must be all there are.
type exact struct{ *gauge }

func (exact) ExactTensors() {}

// other is a part beside a gauge.
func other() state.Values {
	return state.Values{Name: "other", Numbers: &struct{ Step int }{9}, Memory: []state.Tensor{{Name: "x", Shape: []int{1}, Data: []float32{5}}}}
}

// saved returns a checkpoint of parts.
func saved(t *testing.T, parts ...state.Part) *Checkpoint {
	t.Helper()
	s := check.Get(Take(parts))(t)
	dir := t.TempDir()
	check.OK(t, newStore(t, dir, Retention{}).Save(3, s))
	return load(t, dir)
}

// edit changes the text of a state.json and its checksum with it.
func edit(t *testing.T, path, old, new string) {
	t.Helper()
	text := check.Get(os.ReadFile(path))(t)
	check.OK(t, os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o666))
	checkpointtest.Reseal(t, filepath.Dir(path))
}

// rewrite changes the text of the state.json of c and loads it again.
func rewrite(t *testing.T, c *Checkpoint, old, new string) *Checkpoint {
	t.Helper()
	path := filepath.Join(c.Path, manifestName)
	text := check.Get(os.ReadFile(path))(t)
	if !strings.Contains(string(text), old) {
		t.Fatalf("no %q in %s", old, text)
	}
	edit(t, path, old, new)
	return load(t, c.Path)
}

func TestPartsRoundTrip(t *testing.T) {
	g := newGauge()
	c := saved(t, g, other())
	h := newGauge()
	h.count.Seen, h.count.Tags, h.mean, h.owner = 0, []int{1, 2, 3}, make([]float32, 2), make([]int32, 2)
	tags := h.count.Tags
	o := other()
	o.Numbers.(*struct{ Step int }).Step = 0
	unread, err := c.Restore([]state.Part{h, o})
	if err != nil || len(unread) != 0 || !slices.Equal(g.calls, []string{"prepare"}) ||
		!slices.Equal(h.calls, []string{"check", "restored"}) {
		t.Fatalf("%v, unread %v, calls %v and %v", err, unread, g.calls, h.calls)
	}
	if !reflect.DeepEqual(h.count, g.count) || !slices.Equal(h.mean, g.mean) || !slices.Equal(h.owner, g.owner) ||
		o.Numbers.(*struct{ Step int }).Step != 9 {
		t.Errorf("got %+v", h)
	}
	if !slices.Equal(tags, []int{1, 2, 3}) {
		t.Error("the slice that a counter had before was written to")
	}
}

// What does not fit is refused with its place, and every part, also the one that fits, is
// as it was.
func TestRestoreRefuses(t *testing.T) {
	whole := func(t *testing.T) *Checkpoint { return saved(t, other(), newGauge()) }
	for name, x := range map[string]struct {
		from   func(t *testing.T) *Checkpoint
		change func(g *gauge)
		want   string
	}{
		"missing part": {from: func(t *testing.T) *Checkpoint { return saved(t, other()) }, want: `holds no part "gauge" (gauge.safetensors): was that part switched off`},
		"wrong shape":  {change: func(g *gauge) { g.mean = make([]float32, 3) }, want: "mean in gauge.safetensors of PATH has shape [2], want [3]"},
		"missing tensor": {from: func(t *testing.T) *Checkpoint {
			return saved(t, other(), state.Values{Name: "gauge", Numbers: &newGauge().count})
		}, want: "holds no gauge.safetensors"},
		"wrong type":      {from: func(t *testing.T) *Checkpoint { return saved(t, other(), floats(newGauge())) }, want: "owner in gauge.safetensors of PATH holds F32, want a []int32"},
		"refused numbers": {change: func(g *gauge) { g.refuse = errors.New("too many") }, want: "too many (read from PATH)"},
		"both":            {change: func(g *gauge) { g.refuse, g.mean = errors.New("too many"), nil }, want: "has shape [2], want [0]"},
		"unknown counter": {from: func(t *testing.T) *Checkpoint { return rewrite(t, whole(t), `"seen"`, `"odd"`) }, want: `counters of gauge in state.json of PATH: unknown field "odd"`},
		"missing counter": {from: func(t *testing.T) *Checkpoint { return rewrite(t, whole(t), `"seen": 7,`, ``) }, want: `counters of gauge in state.json of PATH: "seen" is missing`},
		"another type":    {from: func(t *testing.T) *Checkpoint { return rewrite(t, whole(t), `"seen": 7`, `"seen": "7"`) }, want: `seen is the text "7", want a whole number`},
		"no counters": {from: func(t *testing.T) *Checkpoint {
			return saved(t, other(), state.Values{Name: "gauge", Memory: newGauge().Tensors()})
		}, want: "counters of gauge in state.json of PATH: there are none"},
	} {
		if x.from == nil {
			x.from = whole
		}
		c := x.from(t)
		g, o := newGauge(), other()
		g.count.Seen, o.Numbers.(*struct{ Step int }).Step, o.Memory[0].Data.([]float32)[0] = 1, 1, 1
		if x.change != nil {
			x.change(g)
		}
		before, mean := g.count, slices.Clone(g.mean)
		_, err := c.Restore([]state.Part{o, g})
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(x.want, "PATH", c.Path)) {
			t.Errorf("%s: got %v", name, err)
		}
		if !reflect.DeepEqual(g.count, before) || !slices.Equal(g.mean, mean) ||
			o.Numbers.(*struct{ Step int }).Step != 1 || o.Memory[0].Data.([]float32)[0] != 1 ||
			slices.Contains(g.calls, "restored") {
			t.Errorf("%s: a part changed: %+v, %+v", name, g, o)
		}
	}
}

// floats is a gauge whose owners were saved as fractions.
func floats(g *gauge) state.Values {
	return state.Values{Name: "gauge", Numbers: &g.count, Memory: []state.Tensor{g.Tensors()[0], {Name: "owner", Shape: []int{2}, Data: []float32{3, -4}}}}
}

// An integer that its place cannot hold is no other integer.
func TestRestoreChecksTheRangeOfIntegers(t *testing.T) {
	g := newGauge()
	c := saved(t, state.Values{Name: "gauge", Numbers: &g.count,
		Memory: []state.Tensor{g.Tensors()[0], {Name: "owner", Shape: []int{2}, Data: []int64{1, 1 << 31}}}})
	if _, err := c.Restore([]state.Part{g}); err == nil ||
		!strings.Contains(err.Error(), "2147483648 does not fit 32 bits") {
		t.Errorf("got %v", err)
	}
}

// A part that nobody reads is named, one that came later is told, and a part takes further
// tensors of its file only where it says nothing else.
func TestPartsOfOneSideOnly(t *testing.T) {
	c := saved(t, newGauge(), other())
	unread, err := c.Restore([]state.Part{other()})
	if err != nil || !slices.Equal(unread, []string{"gauge"}) {
		t.Errorf("unread %v, %v", unread, err)
	}
	g := newGauge()
	g.name = "new"
	if _, err := c.Restore([]state.Part{later{g}, other()}); err != nil || !slices.Equal(g.calls, []string{"absent"}) {
		t.Errorf("a later part: %v, calls %v", err, g.calls)
	}
	g.name = "gauge"
	if _, err := c.Restore([]state.Part{later{g}}); err != nil ||
		!slices.Equal(g.calls, []string{"absent", "check", "restored"}) {
		t.Errorf("a later part that is there: %v, calls %v", err, g.calls)
	}
	few := state.Values{Name: "gauge", Numbers: &g.count, Memory: newGauge().Tensors()[:1]}
	if _, err := c.Restore([]state.Part{few}); err != nil {
		t.Errorf("a part of fewer tensors: %v", err)
	}
	more := saved(t, state.Values{Name: "gauge", Numbers: &g.count,
		Memory: append(newGauge().Tensors(), state.Tensor{Name: "x", Data: []float32{1}})})
	var arch *ArchitectureError
	if _, err := more.Restore([]state.Part{exact{newGauge()}}); !errors.As(err, &arch) || arch.Extra != 1 {
		t.Errorf("an exact part: %v", err)
	}
}

func TestTakeRefuses(t *testing.T) {
	with := func(change func(g *gauge)) state.Part {
		g := newGauge()
		change(g)
		return g
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for want, parts := range map[string][]state.Part{
		`part "gauge" of version 1: the name is used twice`:                  {newGauge(), newGauge()},
		`part "../x" of version 1`:                                           {with(func(g *gauge) { g.name = "../x" })},
		`part "gauge" of version 0`:                                          {with(func(g *gauge) { g.version = 0 })},
		"not ready":                                                          {with(func(g *gauge) { g.refuse = errors.New("not ready") })},
		"counters of c: json: unsupported type: chan int":                    {state.Values{Name: "c", Numbers: &struct{ C chan int }{}}},
		"mean of gauge has numbers that are not finite: nothing is saved":    {with(func(g *gauge) { g.mean[1] = nan })},
		"mean of gauge has numbers that are not finite: nothing is saved: l": {with(func(g *gauge) { g.mean[1] = inf })},
		"mean of gauge is not a number: nothing is saved":                    {with(func(g *gauge) { g.mean[1], g.infinite = nan, true })},
	} {
		check.Fails(Take(parts))(t, want)
	}
	if _, err := Take([]state.Part{with(func(g *gauge) { g.mean[1], g.infinite = inf, true })}); err != nil {
		t.Errorf("an infinity that may be there: %v", err)
	}
}

// A checkpoint of another version is refused with both versions and a cure, no older one
// is taken in its place, and nothing is removed.
func TestAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Retention{Last: 1})
	save(t, s, 10, 20)
	newer := filepath.Join(dir, "step-00000020")
	edit(t, filepath.Join(newer, manifestName), `"version": 3`, `"version": 7`)
	before := names(t, dir)
	for _, latest := range []bool{true, false} {
		for _, path := range []string{dir, newer} {
			_, err := Load(path)
			var v *VersionError
			want := "checkpoint: " + newer +
				": state.json has version 7, this program reads version 3: use the geoalign that wrote it or a newer one, or another checkpoint; nothing was changed there"
			if !errors.As(err, &v) || errors.Is(err, ErrNone) || err.Error() != want {
				t.Errorf("latest %t: got %v, want %s", latest, err, want)
			}
		}
		newStore(t, dir, Retention{Last: 1})
		if _, err := s.Prune(); latest && err != nil {
			t.Error(err)
		}
		if got := names(t, dir); !slices.Equal(got, before) {
			t.Errorf("left %v of %v", got, before)
		}
		if latest {
			before = before[1:]
			check.OK(t, os.Remove(filepath.Join(dir, latestName)))
		}
	}
	if c := load(t, filepath.Join(dir, "step-00000010")); c.Step != 10 {
		t.Errorf("the older one named directly: step %d", c.Step)
	}

	g := newGauge()
	g.version = 2
	for version, want := range map[int]string{
		1: `part "gauge" has version 2, this program reads version 1: use the geoalign that wrote it or a newer one, or another checkpoint`,
		3: `part "gauge" has version 2, this program reads version 3: use the geoalign that wrote it, or another checkpoint`,
	} {
		h := newGauge()
		h.version = version
		check.Fails(saved(t, g).Restore([]state.Part{h}))(t, want)
	}
}

// The first version of state.json, written by the program of that time, is read as parts.
func TestVersion1(t *testing.T) {
	c := load(t, "testdata/version1")
	got := map[string]string{}
	for name, p := range c.manifest.Parts {
		if p.Version != 1 {
			t.Errorf("%s has version %d", name, p.Version)
		}
		var counters map[string]json.RawMessage
		if p.Counters != nil {
			check.OK(t, json.Unmarshal(p.Counters, &counters))
		}
		delete(counters, "values")
		delete(counters, "figures")
		delete(counters, "elapsed_seconds")
		text := check.Get(json.Marshal(counters))(t)
		got[name] = string(text)
	}
	want := map[string]string{
		"model": "null", "momentum": "null", "optimizer": `{"steps":8}`, "queue": `{"filled":24,"pointer":16}`,
		"data": `{"position":68}`, "run": `{"seed":7,"step":8}`,
		"graph": `{"begun":3,"layers":[2,6],"pending":{"begun":7,"pointer":8,"pushed":8,"used":[[2,6],[2,4]]},"used":[[2,6],[2,4]]}`,
	}
	if !reflect.DeepEqual(got, want) || c.Step != 8 {
		t.Errorf("step %d\ngot  %v\nwant %v", c.Step, got, want)
	}
	// Counters that were added after a folder was written are zero.
	g := &struct {
		Position uint64 `json:"position"`
		Later    int    `json:"later"`
	}{Later: 3}
	if _, err := c.Restore([]state.Part{state.Values{Name: "data", Numbers: g}}); err != nil || g.Position != 68 ||
		g.Later != 0 {
		t.Errorf("%v %+v", err, g)
	}
}

// A metric that is recorded later leaves a folder of the first version one of that version.
func TestMetricOfVersion1(t *testing.T) {
	dir := t.TempDir()
	step := filepath.Join(dir, "step-00000008")
	check.OK(t, os.CopyFS(step, os.DirFS("testdata/version1")))
	s := newStore(t, dir, Retention{})
	check.OK(t, s.SetMetric(8, Metric{"eval/retrieval/r_mean", 12.5}))
	c, old := load(t, step), load(t, "testdata/version1")
	if c.Metric == nil || *c.Metric != (Metric{"", 12.5}) || !c.manifest.old || !sameCounters(c, old) {
		t.Errorf("metric %v, %+v", c.Metric, c.manifest)
	}
	check.OK(t, s.SetMetric(8, Metric{Value: math.NaN()}))
	if c := load(t, step); c.Metric != nil || !sameCounters(c, old) {
		t.Errorf("metric %v", c.Metric)
	}
}

// sameCounters compares what two checkpoints hold, white space aside.
func sameCounters(a, b *Checkpoint) bool {
	x, err1 := json.Marshal(a.manifest.Parts)
	y, err2 := json.Marshal(b.manifest.Parts)
	return err1 == nil && err2 == nil && string(x) == string(y)
}
