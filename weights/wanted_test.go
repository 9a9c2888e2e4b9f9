package weights

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights/hub"
	"github.com/geoalign/geoalign/weights/hub/hubtest"
)

// A repository without weights is one line that says what it has.
func TestNoneWanted(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"config.json": "{}", "model.gguf": "x"}, "it has no weights that are read: want model.safetensors, "},
		{map[string]string{"adapter_config.json": "{}", "adapter_model.safetensors": "x"}, "it has an adapter and not the weights that it is put into: download it as a folder, and import --from BASE --adapter FOLDER"},
	} {
		site := hubtest.New(t, "0123456789abcdef0123456789abcdef01234567", c.files)
		client := &hub.Client{Endpoint: site.Hub.URL, Cache: t.TempDir(), HTTP: http.DefaultClient}
		_, err := client.Fetch(t.Context(), "org/tiny", Wanted)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", c.files, err)
		}
	}
}

// An encoder of sentence-transformers is fetched with the files of its modules, whether its tower lies at the top or in a
// folder of its own, and nothing else is.
func TestWanted(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, inner := range []string{"", "0_Transformer/"} {
		modules := `[{"idx": 0, "path": "` + strings.TrimSuffix(inner, "/") + `", "type": "sentence_transformers.models.Transformer"},
			{"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`
		site := hubtest.New(t, commit, map[string]string{"modules.json": modules, "1_Pooling/config.json": `{"pooling_mode_mean_tokens": true}`,
			"config_sentence_transformers.json": `{"prompts": {"query": "q: "}}`, inner + "sentence_bert_config.json": `{"max_seq_length": 5}`,
			"README.md": "# Tiny", inner + "pytorch_model.bin": "old", inner + "onnx/model.safetensors": "other",
			inner + "config.json":       string(check.Get(os.ReadFile("testdata/bert/config.json"))(t)),
			inner + "model.safetensors": string(check.Get(os.ReadFile("testdata/bert/model.safetensors"))(t))})
		c := &hub.Client{Endpoint: site.Hub.URL, Cache: t.TempDir(), HTTP: http.DefaultClient}
		dir := check.Get(c.Fetch(t.Context(), "org/tiny", Wanted))(t)
		var got []string
		check.OK(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				got = append(got, strings.TrimPrefix(path, dir+"/"))
			}
			return err
		}))
		want := []string{"1_Pooling/config.json", "config_sentence_transformers.json", "modules.json", inner + "config.json", inner + "model.safetensors", inner + "sentence_bert_config.json"}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: fetched %v, want %v", inner, got, want)
		}
		m := open1(t, dir)
		text := ""
		for _, s := range m.Settings() {
			text += s.String() + "\n"
		}
		if !strings.Contains(text, `model.text.pool="mean"`) || !strings.Contains(text, "data.tokens=5") || !slices.Equal(m.Encoder.Prompts, []string{"query=q: "}) {
			t.Errorf("%q: %s%+v", inner, text, m.Encoder)
		}
		asked := site.Asked.Load()
		if again := check.Get(c.Fetch(t.Context(), "org/tiny", Wanted))(t); again != dir || site.Asked.Load() != asked {
			t.Errorf("%q: what is in the cache is asked for again", inner)
		}
	}
}

// TestWantedShards: of weights in shards all are fetched, and nothing else, where they lie in a folder of their own too. A
// shard that is not there is one line.
func TestWantedShards(t *testing.T) {
	for _, inner := range []string{"", "0_Transformer/", "0_StaticEmbedding/"} {
		kind := "Transformer"
		if strings.Contains(inner, "Static") {
			kind = "StaticEmbedding"
		}
		modules := `[{"idx": 0, "path": "` + strings.TrimSuffix(inner, "/") + `", "type": "sentence_transformers.models.` + kind + `"}]`
		const index = `{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors", "c": "model-00001-of-00002.safetensors"}}`
		stored := map[string]string{"modules.json": modules, inner + "model.safetensors.index.json": index, inner + "model-00001-of-00002.safetensors": "one",
			inner + "model-00002-of-00002.safetensors": "two", "model-00003-of-00002.safetensors": "other", inner + "pytorch_model.bin": "old"}
		site := hubtest.New(t, "0123456789abcdef0123456789abcdef01234567", stored)
		c := &hub.Client{Endpoint: site.Hub.URL, Cache: t.TempDir(), HTTP: http.DefaultClient}
		dir := check.Get(c.Fetch(t.Context(), "org/tiny", Wanted))(t)
		for name := range stored {
			_, err := os.Stat(filepath.Join(dir, name))
			wanted := name == "modules.json" || strings.HasPrefix(name, inner+"model") && !strings.Contains(name, "00003")
			if (err == nil) != wanted {
				t.Errorf("%q: %s: %v, want it: %t", inner, name, err, wanted)
			}
		}
		delete(stored, inner+"model-00002-of-00002.safetensors")
		site = hubtest.New(t, "0123456789abcdef0123456789abcdef01234567", stored)
		c = &hub.Client{Endpoint: site.Hub.URL, Cache: t.TempDir(), HTTP: http.DefaultClient}
		check.Fails(c.Fetch(t.Context(), "org/tiny", Wanted))(t, "model.safetensors.index.json names the shard "+inner+"model-00002-of-00002.safetensors, which is not there")
	}
}
