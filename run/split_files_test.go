package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// TestFilesAreReadOnce: what a run opened before it began is not read again by its evaluations.
func TestFilesAreReadOnce(t *testing.T) {
	base, err := os.ReadFile("testdata/keys.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		task, run, file string
		sets            []string
	}{
		{TaskSentences, "simcse, triplets", "scores.csv", nil},
		{TaskSentencePairs, "sentence pairs", "pairs.csv", nil},
		{TaskSentiment, "clip", "utterances.safetensors", []string{`eval.beside=["sentiment"]`, "eval.sentiment.train=utterances.safetensors", "eval.sentiment.test=utterances.safetensors", `eval.sentiment.modalities=["audio"]`}},
	} {
		t.Run(c.task, func(t *testing.T) {
			dir := t.TempDir()
			writeSentences(t, dir)
			writeTensors(t, filepath.Join(dir, "utterances.safetensors"), safetensors.Tensor{Name: "labels", Shape: []int{4, 1}, Data: []float32{-1, 0, 1, 2}},
				safetensors.Tensor{Name: "audio", Shape: []int{4, 1}, Data: []float32{1, 2, 2, 4}})
			sets := append(append([]string{"data.root=" + dir}, keysRuns(dir)[c.run]...), c.sets...)
			cfg, err := config.Parse("keys.toml", base, sets)
			if err != nil {
				t.Fatal(err)
			}
			r, err := open(t.Context(), cfg, Options{}, true)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := os.Remove(filepath.Join(dir, c.file)); err != nil {
				t.Fatal(err)
			}
			e := Evaluation{Task: c.task, Config: r.cfg, Engine: r.engine, Model: r.model, Tokenizer: r.tok, Set: r.set}
			if _, err := Evaluate(t.Context(), e); err != nil {
				t.Error(err)
			}
			e.Set = nil
			if _, err := Evaluate(t.Context(), e); err == nil {
				t.Error("a file that is gone was read")
			}
		})
	}
}
