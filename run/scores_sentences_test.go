package run

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// sentenceOutcome is one of three tasks.
func sentenceOutcome(t *testing.T) Sentences {
	t.Helper()
	spec, err := sentencepairs.TaskOf("mrpc")
	if err != nil {
		t.Fatal(err)
	}
	half := eval.Correlation{Spearman: .5, Pearson: .25}
	return Sentences{Rules: []string{"fixed", "probe"}, Notes: []string{"mrpc: left out of 9 rows: 1 without a label"}, SentenceScores: tasks.SentenceScores{Feature: "mean", Width: 3,
		Picture: &tasks.SentencePicture{Task: "mrpc", Pairs: []sentencepairs.Pair{{A: "a", B: "b", Label: 1}, {A: "c", B: "d"}}, First: []float32{1, 0, 0, 0, 1, 0}, Second: []float32{1, 1, 0, 0, 0, 1}, Width: 3,
			Cosines: []float64{.7, .1, .2}, Labels: []int32{1, 0, 0}, Scores: []float64{0, 0, 0}, Spec: spec},
		Tasks: []tasks.PairScores{
			{Task: "mrpc", Split: "val", Pairs: 3, Classes: spec.Classes, Rules: map[string]float64{"fixed": 60}, Constant: []float64{66, 34}, Nearest: 1, Skipped: "there is no file"},
			{Task: "stsb", Pairs: 10, STS: &eval.STS{Parts: []eval.STSPart{{Pairs: 10, Correlation: half}}, All: half, Mean: half, Weighted: half}},
			{Task: "sts12", Pairs: 20, STS: &eval.STS{Parts: []eval.STSPart{{Name: "x", Pairs: 5, Correlation: half}, {Name: "y", Pairs: 15}}, All: eval.Correlation{Spearman: .3}, Mean: eval.Correlation{Spearman: .25}, Weighted: eval.Correlation{Spearman: .125}},
				Isotropy: &eval.Isotropy{Rows: 4, Width: 3, Cosine: .9, EffectiveRank: 2, Positives: 1, Spectrum: []float64{2, 1}}},
		}}}
}

// TestSentencesScores: names of the log, and what people read.
func TestSentencesScores(t *testing.T) {
	s := sentenceOutcome(t)
	values := logged(s)
	for name, want := range map[string]float64{
		"eval/pairs/mrpc/fixed": 60, "eval/pairs/mrpc/majority": 66, "eval/pairs/mrpc/constant": 34, "eval/sts/stsb/spearman": 50, "eval/sts/stsb/pearson": 25,
		"eval/sts/sts12/spearman": 30, "eval/sts/sts12/mean_spearman": 25, "eval/sts/sts12/weighted_spearman": 12.5, "eval/sts/sts12/x/spearman": 50, "eval/sts/mean/spearman": 40,
		"eval/isotropy/sts12/mean_cosine": .9, "eval/isotropy/sts12/effective_rank": 2, "eval/isotropy/sts12/alignment": 0,
	} {
		if v, ok := values[name]; !ok || !(math.Abs(v-want) <= 1e-9) {
			t.Errorf("%s is %g (%v), want %g", name, v, ok, want)
		}
	}
	if _, ok := values["eval/pairs/mrpc/probe"]; ok {
		t.Error("a rule that was left out is logged")
	}
	if m := s.Metric(); m != (checkpoint.Metric{Name: "eval/pairs/mrpc/fixed", Value: 60}) {
		t.Errorf("%+v", m)
	}
	only := s
	only.Rules = []string{"probe"}
	if m := only.Metric(); m.Name != "eval/pairs/mrpc/majority" || m.Value != 66 {
		t.Errorf("%+v", m)
	}
	only.Tasks = s.Tasks[1:]
	if m := only.Metric(); m.Name != "eval/sts/stsb/spearman" || m.Value != 50 {
		t.Errorf("%+v", m)
	}
	text := s.Table()
	for _, want := range []string{
		"similarity, %         pairs  Spearman  Pearson\nstsb                     10     50.00    25.00\nsts12 x                   5     50.00    25.00\n",
		"sts12, all pairs         20     30.00     0.00\n", "accuracy, %  pairs  training  fixed  probe", "66.00 (not_equivalent)", "34.00 (equivalent)", "mrpc: there is no file\n", "1 without a label\n", "mean cosine",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if line := s.Line(); line != "mrpc fixed 60.00 (majority 66.00), stsb Spearman 50.00, sts12 Spearman 30.00" {
		t.Error(line)
	}
	if size := s.Size(); size != "3 tasks of sentence pairs, 33 pairs, by the mean of the tokens (3 numbers)" {
		t.Error(size)
	}
	if b, err := json.Marshal(s.JSON("", "x")); err != nil || !strings.Contains(string(b), `"thresholds"`) && !strings.Contains(string(b), `"sts/mean/spearman":40`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestSentencesPage: the page has the tables, the pairs in the plane and a hill for each class.
func TestSentencesPage(t *testing.T) {
	s := sentenceOutcome(t)
	p, err := s.page(7, true, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pages.WriteSentences(&b, pages.SentencesPage{Title: "x", Sentences: p}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Similarity, %", "Accuracy, %", "Isotropy", "mrpc, PCA", "mrpc, t-SNE", "2 pairs of mrpc: dots are first sentences", "not_equivalent", "singular values", "<title>a | b</title>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	p.Places.TSNE = p.Places.TSNE[1:]
	if err := pages.WriteSentences(&b, pages.SentencesPage{Sentences: p}); err == nil || !strings.Contains(err.Error(), "need two places each") {
		t.Error(err)
	}
	s.Picture.Second[0] = float32(math.NaN())
	if _, err := s.page(7, true, 1); err == nil || !strings.Contains(err.Error(), "not finite numbers") {
		t.Error(err)
	}
	s.Picture.Spec = sentencepairs.Task{High: 5}
	s.Picture.Scores = []float64{0, 2, 5}
	list := cosinesOf(s.Picture)
	if len(list) != 3 || len(list[0].Values) != 1 || len(list[2].Values) != 1 || list[1].Name != "score 1.7 to 3.3" {
		t.Errorf("%+v", list)
	}
}

// TestPageParts: a part of a page is read back, a damaged one is named with its cure, and none is none.
func TestPageParts(t *testing.T) {
	dir := t.TempDir()
	if s, err := readSentences(dir); s != nil || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if list, err := readClasses(dir); list != nil || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	path := filepath.Join(dir, runlog.SentencesFile)
	if err := writePart(path, pages.Sentences{Step: 7}); err != nil {
		t.Fatal(err)
	}
	if s, err := readSentences(dir); err != nil || s.Step != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	for name, text := range map[string]string{runlog.SentencesFile: "{", runlog.ClassesFile: "[{}]"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readSentences(dir); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove it to draw the page without") {
		t.Error(err)
	}
	if _, err := readClasses(dir); err == nil || !strings.Contains(err.Error(), "a task has no table: remove it") {
		t.Error(err)
	}
}

// TestNotesOf: what is left out or cut of a task is told.
func TestNotesOf(t *testing.T) {
	spec, err := sentencepairs.TaskOf("mrpc")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Learn(slices.Values([]string{"one two three"}), 100)
	if err != nil {
		t.Fatal(err)
	}
	set := &sentencepairs.Set{Task: spec, Pairs: []sentencepairs.Pair{{A: "one two three", B: "two"}, {A: "!", B: "two"}}, Counts: sentencepairs.Counts{Counts: table.Counts{Rows: 3, Empty: 1}, Ignored: []string{"STS.gs.SMT.txt"}}}
	got := strings.Join(notesOf(set, sentencepairs.Measure{Tokenizer: tok, Clean: "albef", MaxWords: 2, Tokens: 9}), "\n")
	want := "mrpc: left out of 3 rows: 1 with an empty sentence\nmrpc: scores without sentences: STS.gs.SMT.txt\nmrpc: the end of 1 of 3 sentences is cut (data.max_words, data.tokens)\nmrpc: nothing is left of 1 sentence by data.clean"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestKeepByMetric: checkpoints are kept by any number of the evaluations, and a number that there is none of is refused.
func TestKeepByMetric(t *testing.T) {
	cfg := config.Default()
	r := &Run{cfg: cfg, scores: Probe{}, beside: []Scores{sentenceOutcome(t)}}
	r.cfg.Train.KeepBestBy = "eval/sts/sts12/x/spearman"
	if m, err := r.metric(); err != nil || m != (checkpoint.Metric{Name: "eval/sts/sts12/x/spearman", Value: 50}) {
		t.Errorf("%+v, %v", m, err)
	}
	r.cfg.Train.KeepBestBy = "eval/sts/stsb/kendall"
	if _, err := r.metric(); err == nil || !strings.Contains(err.Error(), "train.keep_best_by: names a number that the evaluation has not") || !strings.Contains(err.Error(), "eval/sts/stsb/spearman") {
		t.Error(err)
	}
	r.cfg.Train.KeepBestBy = config.KeepByBetter
	if m, err := r.metric(); err != nil || m.Name != "eval/probe/top1" {
		t.Errorf("%+v, %v", m, err)
	}
}
