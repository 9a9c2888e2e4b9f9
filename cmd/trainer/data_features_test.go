package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// The commands of make frozen, on fewer pictures: plain features are written and aligned, and words find pictures that
// have what they say.
func TestFeaturesToSearch(t *testing.T) {
	dir := t.TempDir()
	folder, ck, out := filepath.Join(dir, "features"), filepath.Join(dir, "run"), filepath.Join(dir, "gallery")
	texts, query := filepath.Join(folder, "texts.txt"), filepath.Join(dir, "query.npy")
	stdout, _ := must(t, exitDone, "data", "features", "--out", folder, "--set", "data.scenes.test_samples=400", "--set", "model.image.size=48", "--set", "model.image.patch=8", "--json")
	if m := parseJSON(t, stdout); m["images"] != 400.0 || m["texts"] != 400.0 || m["index"] != false {
		t.Errorf("wrote %s", stdout)
	}
	stdout, _ = must(t, exitDone, "train", "--config", "../../configs/gera-quickstart.toml", "--set", "data.root="+folder, "--set", "data.pairs.test_samples=100", "--set", "data.pairs.paired=200", "--set", "train.batch_size=100", "--max-steps", "20", "--out", ck, "--quiet", "--json")
	if r := parseJSON(t, stdout)["first"].(map[string]any)["r_mean"].(float64); r < 40 { // chance is 5.3
		t.Errorf("mean of recalls %v", r)
	}
	rows := filepath.Join(folder, "image.npy")
	embed := []string{"embed", "--checkpoint", ck, "--rows", rows, "--out", out, "--shard", "150", "--quiet"}
	must(t, exitDone, append(embed, "--names", texts)...)
	b := check.Get(os.ReadFile(texts))(t)
	captions := strings.Split(string(b), "\n")
	stdout, _ = must(t, exitDone, "data", "features", "--text", captions[333], "--out", query)
	contains(t, stdout, "features of 1 text of 1024 channels in "+query)
	stdout, _ = must(t, exitDone, "data", "features", "--text", captions[333], "--out", query, "--json")
	if m := parseJSON(t, stdout); m["path"] != query || m["channels"] != 1024.0 {
		t.Errorf("wrote %s", stdout)
	}
	found, names, _ := hits(t, out, "--text-features", query, "--k", "10")
	at := -1
	for i, row := range found {
		if names[i] != captions[row] {
			t.Errorf("row %d is called %q, want %q", row, names[i], captions[row])
		}
		if row == 333 {
			at = i
		}
	}
	if at < 0 {
		t.Errorf("%q finds %q", captions[333], names)
	}

	// Other names are other inputs, and must be as many as there are rows.
	captions[0] = "another name"
	for want, content := range map[string][]string{"has 399 lines, the features 400 rows": captions[:399], "line 3 is blank": append([]string{"a", "b", ""}, captions...)} {
		check.OK(t, os.WriteFile(texts, []byte(strings.Join(content, "\n")), 0o666))
		fails(t, exitFailed, append(embed, "--names", texts), want)
	}
	check.OK(t, os.WriteFile(texts, []byte(strings.Join(captions, "\n")), 0o666))
	_, stderr := must(t, exitDone, append(embed[:len(embed)-1], "--names", texts)...)
	contains(t, stderr, "shard 1 is made again: its rows have changed since")
	if strings.Contains(stderr, "shard 2") {
		t.Errorf("names that stayed make a shard again: %s", stderr)
	}
	fails(t, exitUsage, []string{"embed", "--checkpoint", ck, "--names", texts}, "--names is of --rows")
	fails(t, exitUsage, []string{"data", "features", "--text", "..."}, "--text has no words")
	fails(t, exitUsage, []string{"data", "features", "--text", "a", "--out", "x.txt"}, "--out must name a .npy file")
	fails(t, exitFailed, []string{"data", "features", "--text", "a", "--out", filepath.Join(dir, "none", "x.npy")}, "choose another file with --out")
	fails(t, exitUsage, []string{"data", "features", "--split", "train"}, "the train split of the scenes is endless")
}
