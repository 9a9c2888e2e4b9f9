package train

import (
	"slices"
	"strings"
	"testing"
)

// TestFrozenTowersResume: a run with a frozen tower, whose steps leave patches out, goes on from
// a checkpoint with the same bits. The tower is in the checkpoint, keeps its values, and the
// optimiser knows nothing of it.
func TestFrozenTowersResume(t *testing.T) {
	for name, sets := range map[string][]string{
		"image": {"model.image.freeze=true"},
		"text": {"model.text.freeze=true", "model.image.keep_patches=0.5", "model.system=clip", "model.text.fusion_layers=0",
			"objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0"},
	} {
		t.Run(name, func(t *testing.T) {
			whole := small(t, 0, 0, sets...)
			p := whole.pairs().Params()
			locked := map[string][]float32{}
			for _, q := range p.List() {
				if q.Locked {
					locked[q.Name] = slices.Clone(p.Value(q))
				}
			}
			for i := range 3 {
				whole.must(t, i)
			}
			if len(locked) < 10 {
				t.Fatalf("%d parameters are locked", len(locked))
			}
			for _, q := range p.List() {
				if want, ok := locked[q.Name]; ok && !slices.Equal(p.Value(q), want) {
					t.Errorf("%s is trained", q.Name)
				}
			}
			saved := 0
			for _, part := range whole.State() {
				for _, x := range part.Tensors() {
					for q := range locked {
						if part.StateName() == "model" && x.Name == q {
							saved++
						} else if strings.HasSuffix(x.Name, q) && part.StateName() != "model" {
							t.Errorf("the part %s has %s", part.StateName(), x.Name)
						}
					}
				}
			}
			if saved != len(locked) {
				t.Errorf("%d of %d locked parameters are saved", saved, len(locked))
			}
			sameResumed(t, whole, 3, sets...)
		})
	}
}
