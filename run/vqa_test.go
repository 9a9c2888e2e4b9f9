package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks/vqa"
)

// vqaSets make testdata/keys.toml a run on questions about scenes.
var vqaSets = append(slices.Clone(aloneSets), "objective.vqa.weight=1", "objective.vqa.tokens=5", "objective.vqa.answers=2", "data.kind=vqa", "data.examples.source=scenes")

// TestVQA trains some steps on questions about scenes and answers held-out ones, by candidates and freely.
func TestVQA(t *testing.T) {
	base := check.Get(os.ReadFile("testdata/keys.toml"))(t)
	dir := t.TempDir()
	put := func(name, text string) {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	put("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nyes\nno\nred\nblue\ngreen\nsquare\ncircle\nsmall\nbig\ntop\nleft\nright\nbottom\ncentre\nwhat\n")
	put("answers.txt", "yes\nno\nred\ntop left\n")
	put("marks.txt", "&nbsp;\n")
	cfg, err := config.Parse("keys.toml", base, slices.Concat([]string{"data.root=" + dir, "data.vocab=vocab.txt"}, vqaSets))
	if err != nil {
		t.Fatal(err)
	}
	r := check.Get(openRun(t.Context(), cfg, Options{}, true))(t)
	defer r.Close()
	for i := range 3 {
		check.Get(r.session.Step(t.Context(), i))(t)
	}
	ask := func(sets ...string) (vqa.Scores, error) {
		c := check.Get(r.cfg.With(sets...))(t)
		s, err := Evaluate(t.Context(), Evaluation{Config: c, Engine: r.engine, Model: r.model, Tokenizer: r.tok})
		if err != nil {
			return vqa.Scores{}, err
		}
		return s.(vqa.Scores), nil
	}
	for _, sets := range [][]string{{"eval.vqa.candidates=answers.txt"}, {"eval.vqa.generate=true"}, {"eval.vqa.top=2"}} {
		s, err := ask(sets...)
		if err != nil {
			t.Fatal(sets, err)
		}
		if s.Task() != vqa.Name || s.Questions == 0 || len(s.Answers) != s.Questions || s.Unknown != 0 || s.Accuracy < 0 || s.Accuracy > s.Reachable || s.Metric().Name != "eval/vqa/accuracy" {
			t.Errorf("%v: %+v, %v", sets, s, s.Metric())
		}
		var b bytes.Buffer
		var results []struct {
			ID     int    `json:"question_id"`
			Answer string `json:"answer"`
		}
		if err := s.WriteResults(&b); err != nil || json.Unmarshal(b.Bytes(), &results) != nil || len(results) != s.Questions || results[1].ID != 1 || results[1].Answer != s.Answers[1] {
			t.Errorf("%v: results %.200s (%v)", sets, b.String(), err)
		}
		for _, said := range s.Answers {
			if sets[0] == "eval.vqa.candidates=answers.txt" && !slices.Contains([]string{"yes", "no", "red", "top left"}, said) {
				t.Fatalf("%q is not a candidate", said)
			}
		}
	}
	// Answers that are no candidates are counted and said, and bound what can be reached.
	s, err := ask("eval.vqa.candidates=answers.txt")
	if err != nil || s.Outside == 0 || s.Candidates != 4 || math.Abs(s.Reachable-100*(1-float64(s.Outside)/float64(s.Questions))) > 1e-9 ||
		!strings.Contains(s.Table(), "since the commonest answer to ") || s.Values()["outside"] != float64(s.Outside) {
		t.Errorf("%+v\n%s", s.Values(), s.Table())
	}
	page := filepath.Join(dir, "errors.html")
	check.OK(t, DrawScores(t.Context(), page, s, 3, "val", "x"))
	html, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(html, []byte("Questions about pictures on val")) || !bytes.Contains(html, []byte("commonest answer of people")) || bytes.Count(html, []byte("<img")) < 16 || bytes.Count(html, []byte("where the model looks")) != bytes.Count(html, []byte("<img"))/2 {
		t.Errorf("page of %d bytes (%v)", len(html), err)
	}
	check.Fails(ask("eval.vqa.candidates=marks.txt"))(t, "has no answer of at least one word")
	spoilBias(t, r.pairs.Params())
	for _, way := range []string{"eval.vqa.generate=true", "eval.vqa.candidates=answers.txt"} {
		var diverged *eval.NonFiniteError
		if _, err := ask(way); !errors.As(err, &diverged) {
			t.Errorf("%s: a model of NaN answers: %v", way, err)
		}
	}
	other := cfg
	other.Data.Kind, other.Objective.VQA.Weight = "scenes", 0
	if _, err := Evaluate(t.Context(), Evaluation{Task: vqa.Name, Config: other, Engine: r.engine, Model: r.model, Tokenizer: r.tok}); err == nil || !strings.Contains(err.Error(), "needs a model that was fine-tuned for it (trainer finetune --task vqa)") {
		t.Errorf("a model of another task: %v", err)
	}
}

// TestAnsweredTable: what is left out is said, and an ID that is not a number stays text.
func TestAnsweredTable(t *testing.T) {
	f := &data.FileExamples{}
	f.Add(data.Example{ID: "a1"}, "x")
	s := vqa.Scores{Questions: 1, Unknown: 1, Answers: []string{"red"}, Samples: f}
	var b bytes.Buffer
	if err := s.WriteResults(&b); err != nil || strings.TrimSpace(b.String()) != `[{"question_id":"a1","answer":"red"}]` {
		t.Errorf("%s (%v)", b.String(), err)
	}
	for _, want := range []string{"1 question whose answer nobody knows are left out of it", "answers are written freely"} {
		if !strings.Contains(s.Table(), want) {
			t.Errorf("%q lacks %q", s.Table(), want)
		}
	}
	if _, there := s.Values()["chance"]; there {
		t.Error("answers that are written freely have a chance")
	}
}
