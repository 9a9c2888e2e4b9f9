package main

import (
	"path/filepath"
	"testing"
)

// A map between two models of the same items keeps the new model's neighbours in the old index, which without it has
// those of chance.
func TestMigration(t *testing.T) {
	folder, ck := featuresFolder(t, 300, 16), filepath.Join(t.TempDir(), "run")
	must(t, exitDone, "train", "--config", "../../configs/migrate.toml", "--set", "data.root="+folder, "--set", "data.pairs.image=image.safetensors",
		"--set", "data.pairs.text=text.safetensors", "--set", "data.pairs.test_samples=100", "--out", ck, "--quiet")
	stdout, _ := must(t, exitDone, "eval", "--checkpoint", ck, "--task", "migration", "--json")
	m := parseJSON(t, stdout)
	if m["items"] != 100.0 || m["mapped_r10"].(float64) < 99 || m["old_r10"].(float64) < 99.9 || m["unmapped_r10"].(float64) > 30 || m["chance_r10"].(float64) != 1000/99. {
		t.Errorf("of a rotation: %s", stdout)
	}
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", ck, "--task", "migration")
	contains(t, stdout, "migration on test: 100 items", "new queries, new index                  100.0", "new queries, old index, not mapped")
	fails(t, exitFailed, []string{"eval", "--checkpoint", ck, "--task", "migration", "--set", "eval.max_images=9"}, "9 items have not 10 neighbours each")
	tower := filepath.Join(t.TempDir(), "tower")
	must(t, exitDone, tinyArgs(tower, "--quiet", "--max-steps", "1")...)
	fails(t, exitUsage, []string{"eval", "--checkpoint", tower, "--task", "migration"}, "the task migration needs stored features")
}
