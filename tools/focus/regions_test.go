package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/explain"
)

// trained trains a smaller model than that of a configuration for some steps.
func trained(t *testing.T, file string, steps string) string {
	t.Helper()
	return trainedWith(t, filepath.Join("..", "..", "configs", file), "run.seed=1", "compute.threads=1", "data.scenes.test_samples=60", "data.scenes.epoch_samples=320", "model.image.width=64",
		"model.text.width=64", "model.head.dim=64", "model.text.gru.embedding=32", "optimizer.lr=3e-3", "train.batch_size=32", "train.max_steps="+steps, "eval.batch_size=60")
}

// trainedWith trains by a configuration with settings over it, and returns the run folder.
func trainedWith(t *testing.T, file string, sets ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	cfg, err := config.Load(file, append(sets, "run.out="+dir))
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.New(t.Context(), cfg, run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStrongestRegionIsTheNamedOne: of a model of regions that has learned for some seconds the strongest
// region of a name is the object that it names, nearly always, of one that has not learned not often.
func TestStrongestRegionIsTheNamedOne(t *testing.T) {
	for file, ways := range map[string][]way{
		"gssf-scan.toml":  {{"name alone", explain.FormulaElementwise}, {"in its caption", "attention"}, {"in its caption", explain.FormulaTerms}},
		"gssf-vsepp.toml": {{"name alone", explain.FormulaElementwise}, {"name alone", explain.FormulaGradCAM}},
	} {
		late, chance, err := point(trained(t, file, "120"), 60)
		if err != nil {
			t.Fatal(err)
		}
		early, _, err := point(trained(t, file, "1"), 60)
		if err != nil {
			t.Fatal(err)
		}
		if !(chance > 0.33 && chance < 0.5) {
			t.Errorf("%s: chance %.2f", file, chance)
		}
		for _, w := range ways {
			if late[w].share() < 0.85 || early[w].share() > 0.75 || early[w].named != late[w].named {
				t.Errorf("%s, %v: right for %.2f of %d names, %.2f before training", file, w, late[w].share(), late[w].named, early[w].share())
			}
			t.Logf("%s, %v: %.2f, before training %.2f", file, w, late[w].share(), early[w].share())
		}
	}
}

// TestOfRegions tells runs of regions from others.
func TestOfRegions(t *testing.T) {
	dir := trained(t, "gssf-vsepp.toml", "1")
	if ok, err := ofRegions([]string{dir}); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	if _, err := ofRegions([]string{dir, "none"}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a run that is not there: %v", err)
	}
}
