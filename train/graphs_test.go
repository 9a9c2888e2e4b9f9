package train

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives/geodesic"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// smallGraphs is small with geodesic scores: the queue is full after 3 updates and graphs
// are begun before steps 3, 7 and 11.
func smallGraphs(t *testing.T, sets ...string) *Session {
	t.Helper()
	return small(t, 0, 0, append([]string{"objective.itc.score=geodesic", "queue.size=24", "objective.geodesic.layers=[2, 6]",
		"objective.geodesic.entries=4", "objective.geodesic.period_steps=4"}, sets...)...)
}

// graphMemory copies the graphs and what belongs to them.
func graphMemory(g *model.Graphs) map[string][]float32 {
	out := map[string][]float32{"begun": {float32(g.Begun)}}
	add := func(name string, x *geodesic.Graph) {
		out[name+" centres"], out[name+" paths"], out[name+" reach"] = slices.Clone(x.Centres), slices.Clone(x.Paths), slices.Clone(x.Reach)
		out[name+" used"] = []float32{float32(x.Used), float32(x.Layers[0].Used)}
		out[name+" top"] = slices.Clone(x.Layers[0].Centres)
		for _, o := range x.Owner {
			out[name+" owner"] = append(out[name+" owner"], float32(o))
		}
	}
	add("image", g.Image)
	add("text", g.Text)
	if p := g.Pending; p != nil {
		out["pending"] = []float32{float32(p.Begun), float32(p.Pointer), float32(p.Pushed)}
		add("pending image", p.Image)
		add("pending text", p.Text)
	}
	return out
}

// TestGraphsAreRestored: a session that is set to a checkpoint, in the middle of a rebuild
// too, has the graphs of the one that wrote it, with their figures, and goes on like it.
func TestGraphsAreRestored(t *testing.T) {
	for _, lag := range []string{"0", "2"} {
		s := smallGraphs(t, "objective.geodesic.lag_steps="+lag)
		for i := range 8 {
			s.must(t, i)
		}
		s.pairs().Graphs().Image.Paths[1] += 0.25 // as another processor might have it
		c := s.save(t, t.TempDir(), 8)
		saved, figures := graphMemory(s.pairs().Graphs()), s.pairs().Graphs().Figures()
		if (saved["pending"] != nil) != (lag == "2") {
			t.Fatalf("lag %s: pending %v", lag, saved["pending"])
		}
		for i := range 3 {
			s.must(t, 8+i)
		}

		other := smallGraphs(t, "objective.geodesic.lag_steps="+lag)
		for i := range 4 {
			other.must(t, i) // its own past must not matter
		}
		check.Get(other.Restore(c))(t)
		sameMemory(t, "lag "+lag+", restored", graphMemory(other.pairs().Graphs()), saved)
		if got := other.pairs().Graphs().Figures(); !maps.Equal(got, figures) {
			t.Errorf("lag %s: figures %v, want %v", lag, got, figures)
		}
		for i := range 3 {
			other.must(t, 8+i)
		}
		sameMemory(t, "lag "+lag+", gone on", graphMemory(other.pairs().Graphs()), graphMemory(s.pairs().Graphs()))
		sameMemory(t, "lag "+lag+", gone on", other.memory(), s.memory())

		// Back to the checkpoint, out of a rebuild that goes on.
		check.Get(other.Rollback(c))(t)
		sameMemory(t, "lag "+lag+", rolled back", graphMemory(other.pairs().Graphs()), saved)
	}
}

func sameMemory(t *testing.T, what string, got, want map[string][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d parts, want %d", what, len(got), len(want))
	}
	for name, x := range want {
		if !slices.Equal(got[name], x) {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

// TestGraphsOfOtherLayersAreLeftAside: they are built anew at the next step, as they are
// after a run without graphs.
func TestGraphsOfOtherLayersAreLeftAside(t *testing.T) {
	s := smallGraphs(t)
	for i := range 5 {
		s.must(t, i)
	}
	c := s.save(t, t.TempDir(), 5)
	cosine := small(t, 0, 0, "queue.size=24")
	if state, err := cosine.Restore(c); err != nil || !slices.Equal(state.Unread, []string{"graph"}) {
		t.Fatalf("by cosines: %v, unread %v", err, state.Unread)
	}
	without := cosine.save(t, t.TempDir(), 5)
	check.Get(s.Restore(without))(t)
	if g := s.pairs().Graphs(); g.Begun != -1 || g.Pending != nil {
		t.Errorf("from a run without graphs: those of step %d stay in use", g.Begun)
	}
	for _, x := range []struct {
		layers string
		from   *checkpoint.Checkpoint
	}{{"[4]", c}, {"[2, 3, 12]", c}, {"[2, 6]", without}} {
		other := smallGraphs(t, "objective.geodesic.layers="+x.layers)
		if _, err := other.Restore(x.from); err != nil {
			t.Fatalf("layers %s: %v", x.layers, err)
		}
		if g := other.pairs().Graphs(); g.Begun != -1 || g.Pending != nil {
			t.Errorf("layers %s: graphs of step %d are in use", x.layers, g.Begun)
		}
		other.must(t, 5)
		if g := other.pairs().Graphs(); g.Begun != 5 || g.Image.Used < 2 {
			t.Errorf("layers %s: after a step the graphs are those of step %d with %d centres", x.layers, g.Begun, g.Image.Used)
		}
	}
}

// TestGraphSnapshotRefusesNaN: infinite paths are saved, numbers that are none are not.
func TestGraphSnapshotRefusesNaN(t *testing.T) {
	s := smallGraphs(t)
	for i := range 4 {
		s.must(t, i)
	}
	g := s.pairs().Graphs()
	g.Image.Paths[1] = float32(math.Inf(1))
	if _, err := s.Snapshot(&Event{Step: 4}); err != nil {
		t.Errorf("an infinite path: %v", err)
	}
	g.Text.Reach[3] = float32(math.NaN())
	check.Fails(s.Snapshot(&Event{Step: 4}))(t, "text/reach of graph is not a number")
}
