package run

import (
	"testing"
)

// TestRegionsOfScenesTrain: regions beside pictures, with a vocabulary of words, in a run that is stored and goes on.
func TestRegionsOfScenesTrain(t *testing.T) {
	dir := t.TempDir()
	sets := []string{"data.kind=regions", "data.regions.source=scenes", "data.clean=none", "model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "train.max_steps=2"}
	want := trained(t, settings(t, dir, sets...), Options{})
	o, err := Open(dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	s, err := o.Evaluate(t.Context(), TaskRetrieval, "val", nil)
	if err != nil || s.(Retrieval).First != want.Scores.(Retrieval).First {
		t.Errorf("%v, error %v, want %v", s, err, want.Scores)
	}
	if got := DescribeTokenizer(o.Tokenizer); got.Kind != "WordLevel" || got.Pad != "<pad>" {
		t.Errorf("tokenizer %v", got)
	}
}
