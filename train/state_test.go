package train

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/checkpoint/checkpointtest"
)

// means is a new kind of state, such as the running means of a normalisation: all that a
// checkpoint needs to know of it is in these methods.
type means struct {
	mean  []float32
	count struct {
		Seen int `json:"seen"`
	}
}

func (m *means) StateName() string { return "means" }
func (m *means) StateVersion() int { return 1 }
func (m *means) Counters() any     { return &m.count }
func (m *means) Tensors() []state.Tensor {
	return []state.Tensor{{Name: "mean", Shape: []int{len(m.mean)}, Data: m.mean}}
}

// averaged is a system that has running means.
type averaged struct {
	System
	means means
}

func (a *averaged) State() []state.Part {
	return append(a.System.(stateful).State(), &a.means)
}

func TestANewKindOfStateIsSaved(t *testing.T) {
	with := func() (*Session, *averaged) {
		s := small(t, 0, 0)
		a := &averaged{System: s.model, means: means{mean: make([]float32, 3)}}
		s.model = a
		return s, a
	}
	s, a := with()
	s.must(t, 0)
	copy(a.means.mean, []float32{1, 2, 3})
	a.means.count.Seen = 8
	c := s.save(t, t.TempDir(), 1)

	other, b := with()
	if state, err := other.Restore(c); err != nil || len(state.Unread) != 0 {
		t.Fatalf("%v %+v", err, state)
	}
	if !slices.Equal(b.means.mean, a.means.mean) || b.means.count.Seen != 8 {
		t.Errorf("restored %+v", b.means)
	}
	b.means.mean[0] = 7
	if _, err := other.Rollback(c); err != nil || b.means.mean[0] != 1 {
		t.Errorf("rolled back: %v, %+v", err, b.means)
	}
	sameMemory(t, "the rest", other.memory(), s.memory())

	// A checkpoint without is not a checkpoint of this system, one with is one of the plain system.
	plain := small(t, 0, 0)
	plain.must(t, 0)
	check.Fails(other.Restore(plain.save(t, t.TempDir(), 1)))(t, `no part "means"`)
	if state, err := plain.Restore(c); err != nil || !slices.Equal(state.Unread, []string{"means"}) {
		t.Errorf("means that nobody reads: %v, %v", err, state.Unread)
	}
	b.means.mean[1] = float32(math.NaN())
	check.Fails(other.Snapshot(&Event{Step: 2}))(t, "mean of means has numbers that are not finite")
}

// A checkpoint that does not fit leaves a session as it was.
func TestRestoreOfAnotherRunChangesNothing(t *testing.T) {
	queue := small(t, 0, 0, "queue.size=32")
	for i := range 3 {
		queue.must(t, i)
	}
	c := queue.save(t, t.TempDir(), 3)
	s := small(t, 0, 0)
	s.must(t, 0)
	before, position := s.memory(), s.loader.Position()
	check.Fails(s.Restore(c))(t, "image in queue.safetensors of "+c.Path+" has shape [32 16], want [64 16]")
	sameMemory(t, "after a checkpoint of another queue", s.memory(), before)
	if s.loader.Position() != position {
		t.Error("the place in the data changed")
	}
}

// Counters that do not fit are refused.
func TestCountersAreChecked(t *testing.T) {
	s := smallGraphs(t, "objective.geodesic.lag_steps=2")
	for i := range 8 {
		s.must(t, i)
	}
	c := s.save(t, t.TempDir(), 8)
	path := filepath.Join(c.Path, "state.json")
	text := check.Get(os.ReadFile(path))(t)
	before, graphs := s.memory(), graphMemory(s.pairs().Graphs())
	for _, x := range []struct{ old, new, want string }{
		{`"steps": 8`, `"steps": -1`, "optim: -1 updates"},
		{`"pointer": 16`, `"pointer": 24`, "pointer 24 and fill 24 do not fit 24 entries"},
		{`"filled": 24`, `"filled": 25`, "pointer 16 and fill 25 do not fit 24 entries"},
		{`"pushed": 8`, `"pushed": -8`, "with -8 entries since does not fit a queue of 24"},
		{"\"used\": [\n            [\n              2,\n", "\"used\": [\n            [\n              3,\n", "3 centres in use of 2"},
		{"\"used\": [\n            [\n              2,\n", "\"used\": [\n            [\n", "1 layers with centres, want 2"},
	} {
		if n := bytes.Count(text, []byte(x.old)); n < 1 {
			t.Fatalf("no %q in %s", x.old, text)
		}
		check.OK(t, os.WriteFile(path, bytes.Replace(text, []byte(x.old), []byte(x.new), 1), 0o666))
		checkpointtest.Reseal(t, c.Path)
		bad := check.Get(checkpoint.Load(c.Path))(t)
		check.Fails(s.Restore(bad))(t, x.want, "(read from "+c.Path+")")
		bad.Close()
		sameMemory(t, x.want, s.memory(), before)
		sameMemory(t, x.want, graphMemory(s.pairs().Graphs()), graphs)
	}
}

// A checkpoint that the program of the first version wrote, in the middle of a rebuild of
// its graphs, is restored with the bits of its files, and the next step goes like the one
// that program made.
func TestVersion1IsRestored(t *testing.T) {
	c := check.Get(checkpoint.Load("checkpoint/testdata/version1"))(t)
	defer c.Close()
	cfg, _ := check.Get2(OpenConfig(c, nil))(t)
	tok := check.Get(OpenTokenizer(c))(t)
	s := check.Get(sessionOf(t, cfg, 0, 0, tok))(t)
	state, err := s.Restore(c)
	if err != nil || state.Step != 8 || state.Seed != 7 || state.Elapsed == 0 || state.Values["loss"] == 0 || len(state.Unread) != 0 {
		t.Fatalf("%v %+v", err, state)
	}
	g, q := s.pairs().Graphs(), s.pairs().Queue()
	if s.loader.Position() != 68 || s.optimizer.Steps() != 8 || q.Pointer != 16 || q.Filled != 24 || g.Begun != 3 || g.Pending == nil || g.Pending.Begun != 7 || g.Pending.Pointer != 8 || g.Pending.Pushed != 8 {
		t.Errorf("position %d, %d updates, queue %d %d, graphs of %d, %+v", s.loader.Position(), s.optimizer.Steps(), q.Pointer, q.Filled, g.Begun, g.Pending)
	}
	again := s.save(t, t.TempDir(), 8)
	for _, name := range []string{"model", "momentum", "optimizer", "queue", "graph"} {
		old := check.Get(os.ReadFile(filepath.Join(c.Path, name+".safetensors")))(t)
		now := check.Get(os.ReadFile(filepath.Join(again.Path, name+".safetensors")))(t)
		if !bytes.Equal(old, now) {
			t.Errorf("%s.safetensors of %d bytes is saved as another of %d", name, len(old), len(now))
		}
	}
	s.must(t, 8)
	r := s.must(t, 9)
	if near(r.Loss, 4.898658275604248) && near(r.GradNorm, 8.100747180556446) && near(r.Temperature, 0.07409922033548355) && g.Begun == 7 {
		return
	}
	t.Errorf("loss %v, norm %v, temperature %v, graphs of %d", r.Loss, r.GradNorm, r.Temperature, g.Begun)
}

// near allows for other processors.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-3*math.Abs(want) }
