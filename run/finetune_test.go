package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
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
		if m := base.Model; m.Stored() || m.TextsOnly() || base.ReadsRegions() || m.Image.Freeze {
			continue
		}
		sets := settingsOf(TaskClassification, base)
		if base.Model.Classifies() {
			if sets != nil {
				t.Errorf("%s: settings %q over those of the task", file, sets)
			}
			continue
		}
		if base.Data.Kind != "scenes" { // captions are no classes
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
		if !cfg.Model.Classifies() || cfg.Task() != TaskClassification || DefaultTask(cfg) != TaskClassification || cfg.Model.Image.Width != base.Model.Image.Width {
			t.Errorf("%s: system %q, task %q", filepath.Base(file), cfg.Model.System, cfg.Task())
		}
	}
}
