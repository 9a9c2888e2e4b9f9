package source_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/filetest"
)

// endedLetters are letters with a token that ends a text.
type endedLetters struct{ letters }

func (endedLetters) SepID() int32 { return 1 }

// questionsConfig is a configuration of questions about n pictures that all splits name together.
func questionsConfig(t *testing.T, n int) config.Config {
	t.Helper()
	dir := t.TempDir()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	rows := make([]string, n)
	if err := os.Mkdir(filepath.Join(dir, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		rows[i] = fmt.Sprintf(`["is it grey?", %q, %d]`, []string{"yes", "yes", "no"}[i%3], i)
		filetest.Write(t, filepath.Join(dir, "images", fmt.Sprint(i, ".png")), b.Bytes())
	}
	filetest.Write(t, filepath.Join(dir, "q.json"), "["+strings.Join(rows, ",")+"]")
	cfg := config.Default()
	cfg.Model.Image.Size, cfg.Data.Kind, cfg.Data.Root = 16, source.VQAKind, dir
	e := &cfg.Data.Examples
	e.TrainFiles, e.ValFiles, e.TestFiles = []string{"q.json"}, []string{"q.json"}, []string{"q.json"}
	cfg.Objective.VQA.Answers, cfg.Objective.VQA.Tokens = 2, 4
	return cfg
}

// TestVQAOfFiles: each picture is in one split, and a row has the answers.
func TestVQAOfFiles(t *testing.T) {
	cfg := questionsConfig(t, 60)
	seen := 0
	for _, split := range source.Splits {
		x, err := source.OpenExamples(t.Context(), cfg.Source(), split, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if seen += x.Len(); x.Len() == 0 || x.Len() > 55 {
			t.Errorf("%d questions in %s", x.Len(), split)
		}
	}
	if seen != 60 {
		t.Errorf("%d questions in all splits", seen)
	}
	s, err := source.Stream(t.Context(), cfg.Source(), source.Options{Tokenizer: endedLetters{}})
	if err != nil {
		t.Fatal(err)
	}
	row := batch.New(1, s.Columns()...).Row(0)
	if err := s.Sample(0, row); err != nil {
		t.Fatal(err)
	}
	if w := row.Floats(batch.AnswerWeights); !slices.Equal(w, []float32{1, 0}) {
		t.Errorf("weights %v", w)
	}
	if ids := row.Ints(batch.Answers); len(ids) != 8 || ids[row.Ints(batch.AnswerLengths)[0]-1] != 1 {
		t.Errorf("answers %v of lengths %v", ids, row.Ints(batch.AnswerLengths))
	}
	// Without an answer a question cannot be trained on, but it can be answered.
	filetest.Write(t, filepath.Join(cfg.Data.Root, "asked.json"), `[{"question": "why", "image": "1.jpg"}, {"question": "who", "image": "1.jpg", "answer": "he"}]`)
	train, test := cfg, cfg
	train.Data.Examples = source.Examples{Source: source.ExamplesOfFiles, SplitFiles: source.SplitFiles{TrainFiles: []string{"asked.json"}}}
	test.Data.Examples = source.Examples{Source: source.ExamplesOfFiles, SplitFiles: source.SplitFiles{TestFiles: []string{"asked.json"}}}
	if x, err := source.OpenExamples(t.Context(), train.Source(), "train", source.Options{}); err != nil || x.Len() != 1 {
		t.Errorf("train: %v, want 1 question", err)
	}
	if x, err := source.OpenExamples(t.Context(), test.Source(), "test", source.Options{}); err != nil || x.Len() != 2 {
		t.Errorf("test: %v, want 2 questions", err)
	}
	cfg.Data.Examples.ValFiles, cfg.Data.Examples.TestFiles = nil, nil
	if x, err := source.OpenExamples(t.Context(), cfg.Source(), "train", source.Options{}); err != nil || x.Len() != 60 {
		t.Errorf("a file that one split names: %v", err)
	}
}

// TestVQAOfOneFile: a file is divided among the splits that name it whatever they call it.
func TestVQAOfOneFile(t *testing.T) {
	cfg := questionsConfig(t, 60)
	name := cfg.Data.Examples.TrainFiles[0]
	path := filepath.Join(cfg.Data.Root, name)
	if err := os.Symlink(path, filepath.Join(cfg.Data.Root, "link.json")); err != nil {
		t.Skip(err)
	}
	t.Chdir(cfg.Data.Root)
	cfg.Data.Root = "."
	cfg.Data.Examples.ValFiles, cfg.Data.Examples.TestFiles = []string{path}, []string{"link.json"}
	seen := map[string]string{}
	for _, split := range source.Splits {
		x, err := source.OpenExamples(t.Context(), cfg.Source(), split, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Len() {
			picture := filepath.Base(x.PictureName(i, 0))
			if other := seen[picture]; other != "" && other != split {
				t.Fatalf("picture %s is in %s and in %s", picture, other, split)
			}
			seen[picture] = split
		}
	}
	if len(seen) == 0 {
		t.Error("no picture is in a split")
	}
}

func TestCandidates(t *testing.T) {
	cfg := questionsConfig(t, 60)
	cfg.Eval.MaxImages = 1 // of the samples that are evaluated
	if got, err := cfg.Eval.VQA.LoadCandidates(t.Context(), cfg.Source()); err != nil || !slices.Equal(got, []string{"yes", "no"}) {
		t.Errorf("%q, %v", got, err)
	}
	cfg.Eval.VQA.Common = 1
	if got, err := cfg.Eval.VQA.LoadCandidates(t.Context(), cfg.Source()); err != nil || !slices.Equal(got, []string{"yes"}) {
		t.Errorf("%q, %v", got, err)
	}
	cfg.Eval.VQA.Candidates = "answers.txt"
	if _, err := cfg.Eval.VQA.LoadCandidates(t.Context(), cfg.Source()); err == nil || !strings.Contains(err.Error(), "relative paths start from data.root") {
		t.Errorf("no file: %v", err)
	}
	filetest.Write(t, filepath.Join(cfg.Data.Root, "answers.txt"), "maybe\nno\n")
	if got, err := cfg.Eval.VQA.LoadCandidates(t.Context(), cfg.Source()); err != nil || !slices.Equal(got, []string{"maybe", "no"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestVQAOfScenes: held-out questions do not depend on the seed of a run, those of training do, and no kind of question lacks.
func TestVQAOfScenes(t *testing.T) {
	cfg := config.Default()
	cfg.Model.Image.Size, cfg.Data.Kind, cfg.Data.Examples.Source = 16, source.VQAKind, source.ExamplesOfScenes
	cfg.Data.Scenes.ValSamples, cfg.Data.Scenes.TestSamples, cfg.Data.Scenes.EpochSamples = 50, 10, 500
	other := cfg
	other.Run.Seed++
	for _, split := range []string{"train", "val"} {
		a, err := source.OpenExamples(t.Context(), cfg.Source(), split, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := source.OpenExamples(t.Context(), other.Source(), split, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		same, kinds := 0, map[string]bool{}
		for i := range a.Len() {
			x, y := a.Example(i), b.Example(i)
			kinds[x.Kind] = true
			if x.Text == y.Text {
				same++
			}
			if len(x.Answers) != 1 || x.Answers[0].Weight != 1 || x.Label != data.UnknownLabel {
				t.Fatalf("%s: %+v", split, x)
			}
		}
		if len(kinds) != 7 || split == "val" && same != a.Len() || split == "train" && same > a.Len()/5 {
			t.Errorf("%s: %d of %d questions are the same for another seed, kinds %v", split, same, a.Len(), kinds)
		}
	}
	got, err := cfg.Eval.VQA.LoadCandidates(t.Context(), cfg.Source())
	if err != nil {
		t.Fatal(err)
	}
	w, err := source.World(cfg.Source())
	if err != nil {
		t.Fatal(err)
	}
	if want := w.Answers(); len(got) != len(want) {
		t.Errorf("%d candidates %q, want the %d answers of the world", len(got), got, len(want))
	}
}
