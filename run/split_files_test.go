package run

import (
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/tasks/sentiment"
)

// TestFilesAreReadOnce: what a run opened before it began is not read again by its evaluations.
func TestFilesAreReadOnce(t *testing.T) {
	base := check.Get(os.ReadFile("testdata/keys.toml"))(t)
	for _, c := range []struct {
		task, run, file string
		sets            []string
	}{
		{sentences.Name, "simcse, triplets", "scores.csv", nil},
		{sentencepairs.Name, "sentence pairs", "pairs.csv", nil},
		{sentiment.Name, "clip", "utterances.safetensors", []string{`eval.beside=["sentiment"]`, "eval.sentiment.train=utterances.safetensors", "eval.sentiment.test=utterances.safetensors", `eval.sentiment.modalities=["audio"]`}},
	} {
		t.Run(c.task, func(t *testing.T) {
			dir := t.TempDir()
			writeSentences(t, dir)
			writeTensors(t, filepath.Join(dir, "utterances.safetensors"), safetensors.Tensor{Name: "labels", Shape: []int{4, 1}, Data: []float32{-1, 0, 1, 2}},
				safetensors.Tensor{Name: "audio", Shape: []int{4, 1}, Data: []float32{1, 2, 2, 4}})
			sets := append(append([]string{"data.root=" + dir}, keysRuns(dir)[c.run]...), c.sets...)
			cfg := check.Get(config.Parse("keys.toml", base, sets))(t)
			r := check.Get(openRun(t.Context(), cfg, Options{}, true))(t)
			defer r.Close()
			check.OK(t, os.Remove(filepath.Join(dir, c.file)))
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

// TestBesideExamples: tasks that read a split of images are refused before a run over the examples of a downstream task begins, which have none;
// images of a folder of their own are classified beside it.
func TestBesideExamples(t *testing.T) {
	base := check.Get(os.ReadFile("testdata/keys.toml"))(t)
	photos := t.TempDir()
	for _, class := range []string{"a", "b"} {
		f, err := create(filepath.Join(photos, class, "x.png"))
		if err == nil {
			err = errors.Join(png.Encode(f, image.NewGray(image.Rect(0, 0, 8, 8))), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ beside, images, want string }{
		{"probe", "", `eval.beside: must not have "probe", as data.kind "entailment" has no classes`},
		{"zeroshot", "", `eval.zeroshot.images: must name a folder of classes, as data.kind "entailment" has no classes`},
		{"zeroshot", photos, ""},
	} {
		cfg, err := config.Parse("keys.toml", base, slices.Concat(aloneSets, []string{"objective.entailment.weight=1", "data.kind=entailment", "data.examples.source=scenes",
			`eval.beside=["` + c.beside + `"]`, config.Override("eval.zeroshot.images", c.images)}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = openFinalSplit(t.Context(), cfg, console.Lines(nil)); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.beside, err, c.want)
		}
	}
}

// create makes a file with its folder.
func create(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return os.Create(path)
}
