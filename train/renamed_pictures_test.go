package train

import (
	"fmt"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// pictured are settings of a model whose texts have two pictures.
var pictured = []string{"objective.assignment.weight=1", "objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itm.weight=0", "objective.mlm.weight=0",
	"objective.distill.alpha=0", "queue.size=0", "eval.rerank_top=0"}

// TestInitOfTwoPictures: fusion layer j of the checkpoint is where the layers 2j and 2j+1 start from, teacher included, and of two
// layers the first alone has keys and values.
func TestInitOfTwoPictures(t *testing.T) {
	s, c := trained(t, "model.text.fusion_layers=2")
	fresh := small(t, 0, 0, append(slices.Clone(pictured), "model.text.fusion_layers=2", "run.seed=8")...)
	r, err := InitModel(fresh.model, c, fresh.cfg.Model)
	if err != nil || !slices.Equal(r.Fresh, []string{"assignment_head/bias", "assignment_head/weight"}) {
		t.Fatalf("%v %+v", err, r)
	}
	was, now, first := s.model.Params(), fresh.model.Params(), fresh.cfg.Model.Text.Layers
	seen := map[string]int{}
	for _, q := range now.List() {
		layer, rest, ok := cutLayer(q.Name)
		if !ok || layer < first {
			continue
		}
		from, ok := was.Get(fmt.Sprintf("%s%02d/%s", textLayers, first+(layer-first)/2, rest))
		if !ok {
			t.Fatalf("%s starts from nothing", q.Name)
		}
		if !slices.Equal(now.Value(q), was.Value(from)) || !slices.Equal(now.MomentumValue(q), was.MomentumValue(from)) {
			t.Errorf("%s is not that of layer %s", q.Name, from.Name)
		}
		seen[rest]++
	}
	if seen["crossattention/kv/weight"] != 2 || seen["crossattention/query/weight"] != 4 || seen["ffn/output/bias"] != 4 {
		t.Errorf("layers with each parameter: %v", seen)
	}
	fresh.must(t, 0)
}

// TestInitOfTwoPicturesAgain: a checkpoint of two pictures goes on as it is, and starts no model of one.
func TestInitOfTwoPicturesAgain(t *testing.T) {
	two := append(slices.Clone(pictured), "model.text.fusion_layers=1")
	s, c := trained(t, two...)
	fresh := small(t, 0, 0, append(two, "run.seed=8")...)
	if r, err := InitModel(fresh.model, c, fresh.cfg.Model); err != nil || r.Fresh != nil || r.Unused != nil {
		t.Fatalf("%v %+v", err, r)
	}
	if a, b := s.memory(), fresh.memory(); !slices.Equal(a["values"], b["values"]) || !slices.Equal(a["twins"], b["twins"]) {
		t.Error("parameters or twins differ from the checkpoint's")
	}
	one := small(t, 0, 0, "model.text.fusion_layers=2")
	check.Fails(InitModel(one.model, c, one.cfg.Model))(t, "two pictures of a text, and those of this model read one")
}
