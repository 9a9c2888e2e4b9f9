package config

import (
	"strings"
	"testing"
)

// TestPairFiles: a file of features has a known end or is a folder, and what must be copied needs a
// place for the copy.
func TestPairFiles(t *testing.T) {
	for _, c := range []struct{ file, cache, want string }{
		{"a.npy", "", ""}, {"a.NPZ", "", ""}, {"a.safetensors", "", ""}, {"a.pt", "", ""}, {"a.parquet", "there", ""}, {"folder", "there", ""}, {"clip.v1/", "there", ""},
		{"a.parquet", "", "data.cache_dir: must name a folder for a copy of data.pairs.image"},
		{"folder", "", "data.cache_dir: must name a folder for a copy of data.pairs.image"},
		{"clip.v1", "there", "data.pairs.image: must end in .npy, .npz, .safetensors, .pt, .pth or .parquet"},
		{"", "", "data.pairs.image: must name a file of features"},
	} {
		cfg := Default()
		cfg.Model.System, cfg.Data.Kind, cfg.Data.CacheDir = "heads", "pairs", c.cache
		cfg.Data.Pairs.Image, cfg.Data.Pairs.Text = c.file, "text.npy"
		text := ""
		if err := cfg.Validate(); err != nil {
			text = err.Error()
		}
		if c.want == "" && (strings.Contains(text, "data.pairs") || strings.Contains(text, "cache_dir")) || !strings.Contains(text, c.want) {
			t.Errorf("%q with the cache %q: %s", c.file, c.cache, text)
		}
	}
	cfg := Default()
	cfg.Model.System, cfg.Data.Kind = "heads", "pairs"
	cfg.Data.Pairs.Image, cfg.Data.Pairs.Text, cfg.Data.Pairs.TextPool = "a.npy", "b.npy", "more.parquet"
	wants(t, "pool", cfg, "a copy of data.pairs.text_pool")
}
