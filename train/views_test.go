package train

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// viewsSets make a system of images alone of the tiny configuration.
func viewsSets(system string, more ...string) []string {
	momentum := "momentum.enabled=true"
	if system == "swav" {
		momentum = "momentum.enabled=false"
	}
	return append([]string{
		"model.system=" + system, momentum, "data.views=2", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0",
		"objective.distill.alpha=0", "objective.distill.ramp_steps=0", "objective.distill.ramp_epochs=0", "objective.itc.in_batch_weight=0",
		"objective.itc.positives=pair", "objective.swav.prototypes=10", "objective.swav.freeze_steps=2", "queue.start_steps=1",
		"objective.itc.score=geodesic", "objective.geodesic.layers=[2,6]", "objective.geodesic.neighbours=2", "objective.geodesic.period_steps=4",
	}, more...)
}

// A restored session of images alone continues with the bits of the one that was saved:
// before the first graph, with one, and with a rebuild under way.
func TestViewsResume(t *testing.T) {
	for _, system := range []string{"moco", "swav"} {
		for _, lag := range []string{"0", "2"} {
			sets := viewsSets(system, "objective.geodesic.lag_steps="+lag)
			s := small(t, 0, 0, sets...)
			for _, from := range []int{3, 9, 13} { // the queue of 64 is full after 8 steps of 8
				for i := range from {
					s.must(t, i)
				}
				c := s.save(t, t.TempDir(), from)
				for i := range 3 {
					s.must(t, from+i)
				}
				want := s.memory()
				other := small(t, 0, 0, sets...)
				other.must(t, 0) // its own past must not matter
				if state, err := other.Restore(c); err != nil || state.Step != from {
					t.Fatalf("%s: %v %+v", system, err, state)
				}
				for i := range 3 {
					other.must(t, from+i)
				}
				for name, x := range other.memory() {
					if !slices.Equal(x, want[name]) {
						t.Errorf("%s, lag %s, resumed at %d: %s differs", system, lag, from, name)
					}
				}
				if built := s.pairs().Graphs().Image.Used > 0; built != (from >= 9) || s.pairs().Graphs().Text != nil {
					t.Errorf("%s at %d: graph built: %t", system, from, built)
				}
				s = small(t, 0, 0, sets...)
			}
		}
	}
}

// A checkpoint of one system is none of another.
func TestViewsRestoreAnother(t *testing.T) {
	moco := small(t, 0, 0, viewsSets("moco")...)
	moco.must(t, 0)
	c := moco.save(t, t.TempDir(), 1)
	swav := small(t, 0, 0, viewsSets("swav")...)
	check.Fails(swav.Restore(c))(t, "prototypes")
}
