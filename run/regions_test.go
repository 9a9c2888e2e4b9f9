package run

import (
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

// TestRegionsOfScenesTrain: regions beside pictures, with a vocabulary of words, in a run that is stored and goes on.
func TestRegionsOfScenesTrain(t *testing.T) {
	dir := t.TempDir()
	sets := []string{"data.kind=regions", "data.regions.source=scenes", "data.clean=none", "model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "train.max_steps=2"}
	want := trained(t, settings(t, dir, sets...), Options{})
	o := check.Get(Open(dir, OpenOptions{}))(t)
	defer o.Close()
	s, err := o.Evaluate(t.Context(), retrieval.Name, "val", nil)
	if err != nil || s.(retrieval.Scores).First != want.Scores.(retrieval.Scores).First {
		t.Errorf("%v, error %v, want %v", s, err, want.Scores)
	}
	if got := DescribeTokenizer(o.Tokenizer); got.Kind != "WordLevel" || got.Pad != "<pad>" {
		t.Errorf("tokenizer %v", got)
	}
}
