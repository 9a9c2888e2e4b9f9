package source_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/tasks/sentences"
)

// sentenceFolder writes files of tasks and returns a configuration of their folder.
func sentenceFolder(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Data.Root = t.TempDir()
	for name, text := range map[string]string{
		"MRPC/train.tsv":                "Quality\t#1 String\t#2 String\n1\tA cat.\tA small cat.\n0\tA dog.\tTrees.\n\tA\tB\n",
		"MRPC/dev.tsv":                  "Quality\t#1 String\t#2 String\n1\tA bird.\tThe bird.\n",
		"STS12-en-test/STS.input.x.txt": "A\tB\nC\tD\n",
		"STS12-en-test/STS.gs.x.txt":    "1\n2\n",
		"own.tsv":                       "sentence1\tsentence2\tlabel\nOne.\tTwo.\t1\n",
	} {
		path := filepath.Join(cfg.Data.Root, filepath.FromSlash(name))
		filetest.Write(t, path, text)
	}
	return cfg
}

// TestSentencePairs: files, patterns and folders of a split are the pairs of a stream.
func TestSentencePairs(t *testing.T) {
	cfg := sentenceFolder(t)
	cfg.Data.Kind = source.SentencePairsKind
	p := &cfg.Data.SentencePairs
	p.Task, p.ValFiles = "mrpc", []string{"MRPC"}
	for _, files := range [][]string{{"MRPC"}, {"MRPC/train.tsv"}, {"MRPC/tr*.tsv"}} {
		p.TrainFiles = files
		if err := source.CheckInputs(source.Inputs(cfg.Source(), source.Splits...)); err != nil {
			t.Error(err)
		}
		s, err := source.Stream(t.Context(), cfg.Source(), source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := batch.New(1, s.Columns()...)
		if err := s.Sample(0, b.Row(0)); err != nil || s.EpochSamples() != 2 {
			t.Errorf("%d pairs, %v", s.EpochSamples(), err)
		}
		if got := account.Of(s).String(); got != "3 rows: 2 used; left out: without a label: 1" {
			t.Errorf("account %q", got)
		}
		words, err := source.Texts(t.Context(), cfg.Source(), source.Options{})
		if err != nil || !slices.Equal(words, []string{"a cat", "a small cat", "a dog", "trees"}) {
			t.Errorf("%q, %v", words, err)
		}
	}
	if list, err := source.Finite(cfg.Source()); err != nil || !slices.Equal(list, []string{"train", "val"}) {
		t.Errorf("%q, %v", list, err)
	}
	if set, err := source.OpenSentencePairs(cfg.Source(), "val"); err != nil || len(set.Pairs) != 1 {
		t.Errorf("%+v, %v", set, err)
	}
	p.TestFiles = []string{"MRPC"}
	for split, want := range map[string]string{"test": "has no test files of the task mrpc, only those of val: name these", "train": "relative paths start from data.root"} {
		p.TrainFiles = []string{"none.tsv"}
		if _, err := source.OpenSentencePairs(cfg.Source(), split); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := source.CheckInputs(source.Inputs(cfg.Source(), "train")); err == nil || !strings.Contains(err.Error(), "data.sentence_pairs.train_files: there is no such file") {
		t.Error(err)
	}
	p.TrainFiles = nil
	if _, err := source.OpenSentencePairs(cfg.Source(), "train"); err == nil || !strings.Contains(err.Error(), "data.sentence_pairs.train_files: must name at least one file") {
		t.Error(err)
	}
	if _, err := source.Split(t.Context(), cfg.Source(), "val", source.Options{}); err == nil || !strings.Contains(err.Error(), "has no images and captions") {
		t.Error(err)
	}
}

// TestOpenSentences: tasks of eval.sentences by their folders and by files.
func TestOpenSentences(t *testing.T) {
	cfg := sentenceFolder(t)
	e := &cfg.Eval.Sentences
	for _, c := range []struct {
		item, want string
		train      int
	}{
		{"mrpc", "val MRPC/dev.tsv", 2}, {"mrpc=MRPC", "val MRPC/dev.tsv", 2}, {"sts12", "test STS12-en-test", 0},
		{"mrpc=own.tsv", " own.tsv", 0}, {"rte=own.tsv,own.tsv", " own.tsv", 1},
	} {
		e.Tasks = []string{c.item}
		if err := source.CheckInputs(cfg.Eval.Sentences.Inputs(cfg.Source())); err != nil {
			t.Error(err)
		}
		list, err := cfg.Eval.Sentences.Open(cfg.Source())
		if err != nil {
			t.Fatal(err)
		}
		s := list[0]
		if got := s.Split + " " + s.Files; !strings.HasSuffix(got, c.want[strings.LastIndexByte(c.want, ' ')+1:]) || !strings.HasPrefix(got, c.want[:1]) {
			t.Errorf("%s: %q, want %q", c.item, got, c.want)
		}
		train := 0
		if s.Train != nil {
			train = len(s.Train.Pairs)
		}
		if train != c.train {
			t.Errorf("%s: %d training pairs, want %d", c.item, train, c.train)
		}
	}
	e.Tasks, e.MaxTrain, e.MaxPairs = []string{"mrpc=MRPC/train.tsv,MRPC/train.tsv"}, 1, 1
	if list, err := cfg.Eval.Sentences.Open(cfg.Source()); err != nil || len(list[0].Train.Pairs) != 1 || len(list[0].Test.Pairs) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	rules := e.Rules
	e.Rules = []string{sentences.FixedRule, sentences.KMeansRule}
	if list, err := cfg.Eval.Sentences.Open(cfg.Source()); err != nil || list[0].Train != nil {
		t.Errorf("%+v, %v", list, err)
	}
	e.Rules = rules
	for item, want := range map[string]string{
		"rte": "eval.sentences.tasks: rte: data: ", "rte=none.tsv": "relative paths start from data.root", "stsb=own.tsv,none.tsv": "", "rte=own.tsv,none.tsv": "no such file",
	} {
		e.Tasks = []string{item}
		if _, err := cfg.Eval.Sentences.Open(cfg.Source()); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", item, err, want)
		}
	}
	e.Tasks = []string{"rte=none.tsv"}
	if err := source.CheckInputs(cfg.Eval.Sentences.Inputs(cfg.Source())); err == nil || !strings.Contains(err.Error(), "eval.sentences.tasks: there is no such file") {
		t.Error(err)
	}
	e.Tasks, e.Folder = []string{"rte"}, "none"
	if err := source.CheckInputs(cfg.Eval.Sentences.Inputs(cfg.Source())); err == nil || !strings.Contains(err.Error(), "eval.sentences.folder: there is no such folder") {
		t.Error(err)
	}
	e.Tasks = nil
	if _, err := cfg.Eval.Sentences.Open(cfg.Source()); err == nil || !strings.Contains(err.Error(), "eval.sentences.tasks: must name a task") {
		t.Error(err)
	}
}
