package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/configs"
	"github.com/geoalign/geoalign/internal/check"
)

// The program has its configurations where no file of it is: by name, as a list, and as copies that are changed.
func TestBuiltInConfigurations(t *testing.T) {
	t.Chdir(t.TempDir())
	stdout, _ := must(t, exitDone, "configs")
	if lines := strings.Count(stdout, "\n"); lines != len(configs.List()) || !strings.Contains(stdout, "\nquickstart  ") {
		t.Errorf("%d lines:\n%s", lines, stdout)
	}
	var list []configs.Shipped
	stdout, _ = must(t, exitDone, "configs", "--json")
	check.OK(t, json.Unmarshal([]byte(stdout), &list))
	if len(list) != len(configs.List()) {
		t.Errorf("%d", len(list))
	}
	stdout, _ = must(t, exitDone, "configs", "ideas/geodesic")
	must(t, exitDone, "validate", "--config", write(t, "own.toml", stdout))
	must(t, exitDone, "validate", "--config", "ideas/geodesic")
	fails(t, exitUsage, []string{"configs", "quickstat"}, `no built-in configuration "quickstat"`)
	fails(t, exitUsage, []string{"train"}, "--config quickstart")
	fails(t, exitUsage, []string{"train", "--max-steps", "3", "--dry-run"}, "train needs a configuration")
	fails(t, exitUsage, []string{"evaluate"}, "eval")
	stdout, _ = must(t, exitDone, "version")
	want, _ := must(t, exitDone, "--version")
	if stdout != want {
		t.Errorf("%q and %q", stdout, want)
	}
	stdout, _ = must(t, exitDone, "licenses")
	for _, module := range []string{"gorgonia.org/gorgonia v", "github.com/spf13/cobra v", "The Go Authors", "Apache License"} {
		if !strings.Contains(stdout, module) {
			t.Errorf("licenses lack %s", module)
		}
	}
}

// recipe are the settings by which a configuration of paper scale makes a step of some milliseconds: small towers, and
// built-in pictures in the place of files that are not here. What it switches on stays as it is.
func recipe(c *config.Config) (set []string) {
	set = append(set, "train.batch_size=8", "train.max_steps=4", "train.max_epochs=0", "schedule.warmup_steps=0",
		"data.scenes.epoch_samples=64", "data.scenes.val_samples=16", "data.scenes.test_samples=16", "data.vocab=",
		"data.template=albef", "data.vocab_size=200", "init.image.path=", "init.text.path=", "model.image.size=64",
		"model.text.positions=128")
	if c.Train.AccumulateSteps > 1 {
		set = append(set, "train.accumulate_steps=2")
	}
	if c.Queue.Size > 0 {
		set = append(set, "queue.size=32", "objective.geodesic.layers=[2, 4]", "objective.geodesic.neighbours=2")
	}
	switch {
	case c.Model.Image.Style == "resnet":
		set = append(set, "model.image.resnet.width=4", "model.image.resnet.shuffle_groups=0", "model.views.hidden=16",
			"objective.swav.prototypes=10", "model.text.layers=1", "model.text.width=32", "model.text.heads=2",
			"model.head.shared=32")
	case c.Data.Kind == "regions":
		return append(set, "data.regions.source=scenes", "model.image.width=32", "model.text.width=32",
			"model.head.dim=32", "model.text.gru.embedding=16")
	default:
		set = append(set, "model.image.depth=1", "model.image.width=32", "model.image.heads=2", "model.text.layers=1",
			"model.text.width=32", "model.text.heads=2")
	}
	if c.Data.Kind != "folder" {
		set = append(set, "data.kind=scenes")
	}
	return set
}

// TestPaperRecipes: every configuration of paper scale makes steps of its losses with small towers on built-in data;
// that they are valid at their own size is TestShippedConfigs.
func TestPaperRecipes(t *testing.T) {
	folder := filepath.Join(check.Get(filepath.Abs(repository))(t), "configs", "paper")
	images, features := classImages(t), featuresFolder(t, 80, 12)
	t.Chdir(t.TempDir())
	files := check.Get(filepath.Glob(filepath.Join(folder, "*.toml")))(t)
	if len(files) < 15 {
		t.Fatalf("%d recipes", len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".toml")
		t.Run(name, func(t *testing.T) {
			text := string(check.Get(os.ReadFile(file))(t))
			if !strings.Contains(text, "# Not as in the paper") && !strings.Contains(text, " Not as in ") {
				t.Error("its header does not say what differs from the paper")
			}
			c := check.Get(config.Load("paper/"+name, nil))(t)
			set := recipe(&c)
			switch c.Data.Kind {
			case "folder":
				set = append(set, "data.root="+images)
			case "pairs":
				set = append(slices.Clone(curveFeatures), "data.root="+features, "train.batch_size=8", "train.max_steps=4",
					"train.max_epochs=0", "data.pairs.paired=24", "model.head.dim=8", "objective.geometric.neighbours=4",
					"eval.zeroshot.image=", "eval.zeroshot.text=", "eval.zeroshot.image_labels=", "eval.zeroshot.text_labels=")
			}
			if c.Objective.MAFA.Connector != "" {
				must(t, exitDone, append([]string{"train", "--config", "paper/geomm", "--quiet", "--out", "connector"},
					sets(append(recipe(&c), "objective.itc.score=cosine", "data.scenes.epoch_samples=640")...)...)...)
				set = append(set, "objective.mafa.connector=connector", "data.scenes.epoch_samples=640")
			}
			stdout, _ := must(t, exitDone, append([]string{"train", "--config", "paper/" + name, "--dry-run", "--json"}, sets(set...)...)...)
			var plan struct{ Parameters, Steps, Nodes int }
			check.OK(t, json.Unmarshal([]byte(stdout), &plan))
			if plan.Parameters == 0 || plan.Steps != 4 || plan.Nodes == 0 {
				t.Errorf("%+v", plan)
			}
		})
	}
}
