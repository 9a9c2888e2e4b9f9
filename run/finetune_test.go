package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks/classes"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

// TestClassificationSettings: the settings of classification make a valid configuration of every one in configs with an image tower that
// sees pixels, and change none of classification.
func TestClassificationSettings(t *testing.T) {
	files, err := filepath.Glob("../configs/*.toml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		base, err := config.Load(file, nil)
		if err != nil {
			if _, missing := os.Stat(file); missing == nil && strings.Contains(err.Error(), "data.root") {
				continue
			}
			t.Fatalf("%s: %v", file, err)
		}
		if m := base.Model; base.Has(section.Stored) || base.Has(section.Sentences) || base.Has(section.Regions) || m.Image.Freeze {
			continue
		}
		sets := settingsOf(classes.Name, base)
		if base.Has(section.Classes) {
			if sets != nil {
				t.Errorf("%s: settings %q over those of the task", file, sets)
			}
			continue
		}
		if base.Data.Kind != "scenes" { // captions are not classes
			sets = append(sets, "data.kind=folder")
		}
		cfg, err := config.Load(file, sets)
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
			continue
		}
		if list := cfg.Unread(); base.Data.Kind == "scenes" && len(list) > 0 { // of which the user would be told
			t.Errorf("%s: the settings of the task leave keys that nothing reads: %v", filepath.Base(file), list)
		}
		if !cfg.Has(section.Classes) || cfg.Task() != classes.Name || DefaultTask(cfg) != classes.Name || cfg.Model.Image.Width != base.Model.Image.Width {
			t.Errorf("%s: system %q, task %q", filepath.Base(file), cfg.Model.System, cfg.Task())
		}
	}
}

// TestKeptByANumberOfAnotherTask: a number of the evaluation of the checkpoint's own task is none of that of another task, and train.keep_best_by
// names it no more; one that is evaluated beside both stays.
func TestKeptByANumberOfAnotherTask(t *testing.T) {
	base := check.Get(config.Load("../configs/scenes.toml", nil))(t)
	for _, by := range []string{"eval/retrieval/first/i2t_r1", "eval/sts/stsb/spearman", config.KeepByFirst} {
		base.Train.KeepBestBy = by
		for _, task := range FinetuneTasks() {
			reset := slices.Contains(settingsOf(task, base), config.Reset("train.keep_best_by"))
			want := by == "eval/retrieval/first/i2t_r1" && task != retrieval.Name
			if task == classes.Name { // which has no text
				want = true
			}
			if reset != want {
				t.Errorf("%s for %s: reset %v, want %v", by, task, reset, want)
			}
		}
	}
}

// TestFinetuneOfATask: a run of a task is fine-tuned for every other one: by its loss alone, and of scenes on scenes.
func TestFinetuneOfATask(t *testing.T) {
	for _, from := range []string{"vqa", "entailment", "nlvr", "captioning", "grounding"} {
		base := check.Get(config.Load("../configs/"+from+".toml", nil))(t)
		for _, task := range FinetuneTasks() {
			cfg, err := base.With(settingsOf(task, base)...)
			if err == nil {
				err = cfg.Validate()
			}
			if task == classes.Name && base.Model.Image.Freeze { // which is then told so
				continue
			}
			if err != nil {
				t.Errorf("%s after %s: %v", task, from, err)
				continue
			}
			trains := cfg.Task()
			if trains == "" && cfg.TaskLoss() == "objective.assignment" {
				trains = "assignment"
			} else if trains == "" {
				trains = retrieval.Name
			}
			of := func(u config.Unread) bool {
				return u.Path == "data.examples.source" || strings.HasPrefix(u.Path, base.TaskLoss()+".")
			}
			if trains != task || !cfg.Data.Drawn() || slices.ContainsFunc(cfg.Unread(), of) {
				t.Errorf("%s after %s trains %s on %s of %s: %v", task, from, trains, cfg.Data.Kind, cfg.Data.Examples.Source, cfg.Unread())
			}
		}
	}
}

// TestFinetuneOfScenes: a task of examples takes scenes from a run of scenes, and no other task sets a key for it that nothing reads.
func TestFinetuneOfScenes(t *testing.T) {
	base := config.Default()
	for _, task := range FinetuneTasks() {
		cfg := check.Get(base.With(settingsOf(task, base)...))(t)
		if slices.ContainsFunc(cfg.Unread(), func(u config.Unread) bool { return u.Path == "data.examples.source" }) {
			t.Errorf("%s sets data.examples.source, which nothing reads with data.kind %q", task, cfg.Data.Kind)
		}
		if cfg.Data.Kind != base.Data.Kind && cfg.Data.Examples.Source != source.ExamplesOfScenes {
			t.Errorf("%s has the source %q", task, cfg.Data.Examples.Source)
		}
	}
	if sets := settingsOf(multimodal.EntailmentName, base, "data.examples.train_files=a.json"); slices.Contains(sets, "data.examples.source=scenes") {
		t.Errorf("scenes take the place of files that are named: %q", sets)
	}
	if sets := settingsOf(retrieval.Name, base, "data.kind=entailment"); !slices.Contains(sets, "data.examples.source=scenes") {
		t.Errorf("data of another kind are not told of scenes: %q", sets)
	}
}

// TestFinetunedAlone: the loss of a task stands alone, whatever losses the checkpoint was trained by, that of another task included.
func TestFinetunedAlone(t *testing.T) {
	albef := config.Default()
	statements := check.Get(albef.With(settingsOf("assignment", albef)...))(t)
	for _, x := range []struct {
		base config.Config
		set  []string
	}{
		{albef, nil},
		{statements, nil}, // NLVR as docs/tasks.md goes on
		{albef, []string{"objective.structure.weight=1", "objective.structure.hops=2"}},
		{albef, []string{"objective.geometric.weight=1", "objective.geometric.scale=relative"}},
		{albef, []string{"objective.captioning.weight=1", "objective.captioning.tokens=9"}}, // by recurrent units, beside other losses
		{albef, []string{"objective.hinge.weight=1", "objective.distill_scores.teacher=teacher"}},
	} {
		base := check.Get(x.base.With(x.set...))(t)
		for _, task := range []string{"entailment", "assignment", "nlvr", "vqa", "captioning"} {
			cfg, err := base.With(settingsOf(task, base)...)
			if err == nil {
				err = cfg.Validate()
			}
			if err != nil {
				t.Errorf("%s after %q: %v", task, x.set, err)
				continue
			}
			for _, d := range cfg.NotDefault() {
				loss := strings.TrimPrefix(d.Path, "objective.")
				if loss == d.Path || strings.HasPrefix(loss, task+".") || slices.Contains([]string{"itc.weight", "itm.weight", "mlm.weight", "distill.alpha"}, loss) {
					continue
				}
				t.Errorf("%s after %q has %s = %v", task, x.set, d.Path, d.Now)
			}
		}
	}
}

// TestFilesOfATask: a task that is fine-tuned from a run of scenes reads the files that a setting names, however that is written.
func TestFilesOfATask(t *testing.T) {
	base := config.Default()
	base.Data.Kind = "scenes"
	for set, want := range map[string]string{
		"data.batch=1": source.ExamplesOfScenes, `data.examples.train_files=["x.jsonl"]`: "", ` data.examples.train_files = ["x.jsonl"]`: "",
	} {
		got := sourceOf(base, []string{"data.kind = 'entailment' ", set})
		if want == "" && got != nil || want != "" && !slices.Equal(got, []string{"data.examples.source=" + want}) {
			t.Errorf("%s: %q", set, got)
		}
	}
}
