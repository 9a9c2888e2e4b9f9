package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// sentenceFiles writes small tasks of sentence pairs about scenes and returns their folder.
func sentenceFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	same, other := "1\ta red circle\ta red circle\n", "0\ta red circle above a square\ta blue triangle\n"
	for name, text := range map[string]string{
		"MRPC/train.tsv":                "Quality\t#1 String\t#2 String\n" + strings.Repeat(same+other, 8),
		"MRPC/dev.tsv":                  "\xef\xbb\xbfQuality\t#1 String\t#2 String\n" + same + other + same + "\ta\tb\n1\t\"a green square\ta square\n",
		"STS-B/dev.json":                `{"0": {"text_a": "a red circle", "text_b": "a red circle", "label": "5.0"}, "1": {"text_a": "a red circle", "text_b": "a blue square", "label": 1.5}, "2": {"text_a": "a circle", "text_b": "a red circle", "label": 4}}`,
		"STS12-en-test/STS.input.x.txt": "a red circle\ta circle\na square\ta green square above a circle\n",
		"STS12-en-test/STS.gs.x.txt":    "4\n2\n",
		"STS12-en-test/STS.input.y.txt": "a red circle\ta circle\na square\ta square\na blue square\tno text\n",
		"STS12-en-test/STS.gs.y.txt":    "4\n5\n\n",
		"STS12-en-test/STS.gs.ALL.txt":  "4\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check.OK(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// TestSentences: tasks of sentence pairs beside training, by which checkpoints are kept, and by eval.
func TestSentences(t *testing.T) {
	files := sentenceFiles(t)
	dir := filepath.Join(t.TempDir(), "run")
	tasks := []string{"--set", "data.root=" + files, "--set", `eval.sentences.tasks=["mrpc", "stsb", "sts12"]`}
	train := tinyArgs(dir, append([]string{"--max-steps", "3", "--set", `eval.beside=["sentences"]`, "--set", "train.keep_best_by=eval/sts/sts12/y/spearman", "--set", "train.eval_every_steps=1", "--set", "train.save_every_steps=1",
		"--set", "train.keep_last=3", "--set", "eval.sentences.isotropy=10"}, tasks...)...)
	stdout, stderr := must(t, exitDone, train...)
	contains(t, stdout, "similarity, %", "sts12 x", "sts12 test, all pairs", "mrpc val", "always the nearest class", "isotropy")
	contains(t, stderr, "stsb Spearman")
	log := check.Get(os.ReadFile(filepath.Join(dir, "metrics.jsonl")))(t)
	contains(t, string(log), `"eval/sts/stsb/spearman":`, `"eval/sts/sts12/y/spearman":`, `"eval/sts/sts12/weighted_pearson":`, `"eval/sts/mean/spearman":`, `"eval/pairs/mrpc/tuned":`, `"eval/pairs/mrpc/majority":`, `"eval/isotropy/stsb/uniformity":`, `"eval/retrieval/rsum":`)
	page := check.Get(os.ReadFile(filepath.Join(dir, "report.html")))(t)
	contains(t, string(page), "Sentence pairs", "mrpc, PCA", "STS: spearman", "mrpc: accuracy")
	state := check.Get(os.ReadFile(filepath.Join(dir, "checkpoints", "latest")))(t)
	kept := check.Get(os.ReadFile(filepath.Join(dir, "checkpoints", strings.Fields(string(state))[0], "state.json")))(t)
	contains(t, string(kept), `"eval/sts/sts12/y/spearman"`)

	eval := append([]string{"eval", "--checkpoint", dir, "--task", "sentences"}, tasks...)
	out := filepath.Join(t.TempDir(), "pairs.html")
	stdout, _ = must(t, exitDone, append(eval, "--out", out)...)
	contains(t, stdout, "sentences: 3 tasks of sentence pairs, 11 pairs, by the class token", "mrpc: left out of 5 rows: 1 without a label", "sts12: scores without sentences: STS.gs.ALL.txt")
	drawn := check.Get(os.ReadFile(out))(t)
	contains(t, string(drawn), "mrpc, t-SNE", "singular values")
	for _, feature := range []string{"mean", "head"} {
		stdout, _ = must(t, exitDone, append(eval, "--json", "--set", "eval.sentences.feature="+feature, "--set", `eval.sentences.rules=["fixed"]`)...)
		m := parseJSON(t, stdout)
		list := m["tasks"].([]any)
		first, last := list[0].(map[string]any), list[2].(map[string]any)
		if m["feature"] != feature || len(list) != 3 || first["pairs"] != 4. || first["train"] != nil || len(first["rules"].(map[string]any)) != 1 || len(last["sts"].(map[string]any)["parts"].([]any)) != 2 {
			t.Errorf("%s", stdout)
		}
	}
	must(t, exitDone, append(eval, "--quiet", "--set", "data.kind=captions")...) // no split is read
	fails(t, exitUsage, append(eval, "--set", "eval.sentences.tasks=[]"), "eval.sentences.tasks: must name a task of sentence pairs")
	fails(t, exitFailed, append(eval, "--set", `eval.sentences.tasks=["rte"]`), "eval.sentences.tasks: rte: data: "+files+" has no val files of the task rte")
	// What a run evaluates on is looked at before it begins.
	if said := fails(t, exitUsage, tinyArgs(t.TempDir(), "--max-steps", "1", "--set", `eval.beside=["sentences"]`, "--set", `eval.sentences.tasks=["stsb=/nowhere.json"]`), "eval.sentences.tasks: there is no such file"); strings.Contains(said, "loss") {
		t.Errorf("the run began: %s", said)
	}
	fails(t, exitUsage, append([]string{"train", "--config", tiny, "--out", filepath.Join(t.TempDir(), "x"), "--max-steps", "1", "--set", "train.keep_best_by=eval/sts/rte/spearman", "--set", `eval.beside=["sentences"]`}, tasks...), "train.keep_best_by: names a number that the evaluation lacks")
}

// TestDataSentences: stats, check and preview of pairs of sentences, which need no system that is trained on them.
func TestDataSentences(t *testing.T) {
	files := sentenceFiles(t)
	set := []string{"--set", "data.root=" + files, "--set", "data.kind=sentence_pairs", "--set", "data.sentence_pairs.task=mrpc", "--set", `data.sentence_pairs.train_files=["MRPC"]`, "--set", `data.sentence_pairs.val_files=["MRPC/dev.tsv"]`}
	stdout, _ := must(t, exitDone, append([]string{"data", "stats"}, set...)...)
	contains(t, stdout, "sentence_pairs, mrpc", "of not_equivalent", "left out: unlabelled, empty, bad", "1, 0, 0", "different sentences")
	stdout, _ = must(t, exitDone, append([]string{"data", "stats", "--json", "--split", "val"}, set...)...)
	val := parseJSON(t, stdout)["splits"].([]any)[0].(map[string]any)
	if val["pairs"] != 4. || val["sentences"] != 5. || val["read"].(map[string]any)["unlabelled"] != 1. {
		t.Errorf("%s", stdout)
	}
	stdout, stderr := must(t, exitFailed, append([]string{"data", "check"}, set...)...)
	contains(t, stdout, "train: 16 pairs", "! leak: 16", `"a red circle", "a red circle" is in val too`, "repeated pair: 14", "unlabelled row: 1")
	contains(t, stderr, "the data needs attention")
	stdout, _ = must(t, exitDone, append([]string{"data", "preview", "--images", "2", "--split", "val"}, set...)...)
	contains(t, stdout, "label           first sentence", "equivalent      a red circle", "not_equivalent  a red circle above a square  a blue triangle")
	stdout, _ = must(t, exitDone, append([]string{"data", "preview", "--json"}, set...)...)
	if m := parseJSON(t, stdout); len(m["pairs"].([]any)) != 16 || m["task"] != "mrpc" {
		t.Errorf("%s", stdout)
	}
	fails(t, exitUsage, append([]string{"data", "preview", "--split", "test"}, set...), "data.sentence_pairs.test_files: must name at least one file")
	fails(t, exitUsage, append([]string{"train", "--out", t.TempDir()}, set...), `data.kind: must not be "sentence_pairs"`)
	fails(t, exitUsage, []string{"data", "stats", "--set", "data.kind=sentence_pairs"}, "data.sentence_pairs.train_files: must name at least one file")
	fails(t, exitFailed, append(append([]string{"data", "stats"}, set...), "--set", "data.sentence_pairs.task=rte"), `there is no column "sentence1", "sentence2", "label" of the task rte, only ["Quality" "#1 String" "#2 String"]`)
}

// utteranceFile writes n utterances of the layout of CMU-MOSEI and their words, and returns both names.
func utteranceFile(t *testing.T, dir, name string, n int) (file, texts string) {
	t.Helper()
	labels, audio, vision := make([]float32, n), make([]float32, 4*n), make([]float32, 6*n)
	var lines strings.Builder
	for i := range n {
		labels[i] = float32(i%6) - 2.7
		audio[4*i+2], audio[4*i+3] = labels[i], float32(i%5) // behind a step of padding
		vision[6*i] = float32(i % 3)
		lines.WriteString([]string{"a red circle\n", "a blue square\n"}[i%2])
	}
	var list []safetensors.Tensor
	for _, x := range []struct {
		name  string
		shape []int
		data  []float32
	}{{"audio", []int{n, 2, 2}, audio}, {"labels", []int{n, 1, 1}, labels}, {"vision", []int{n, 3, 2}, vision}} {
		list = append(list, safetensors.Tensor{Name: x.name, Shape: x.shape, Data: x.data})
	}
	f := check.Get(os.Create(filepath.Join(dir, name+".safetensors")))(t)
	if err := errors.Join(safetensors.Write(f, list, nil), f.Close(), os.WriteFile(filepath.Join(dir, name+".txt"), []byte(lines.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	return name + ".safetensors", name + ".txt"
}

// TestSentiment: utterances by eval and beside training.
func TestSentiment(t *testing.T) {
	files := t.TempDir()
	train, trainTexts := utteranceFile(t, files, "train", 40)
	test, testTexts := utteranceFile(t, files, "test", 20)
	set := []string{"--set", "data.root=" + files, "--set", "eval.sentiment.train=" + train, "--set", "eval.sentiment.test=" + test, "--set", `eval.sentiment.modalities=["audio", "vision"]`}
	dir := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, tinyArgs(dir, append([]string{"--max-steps", "1", "--set", `eval.beside=["sentiment"]`}, set...)...)...)
	log := check.Get(os.ReadFile(filepath.Join(dir, "metrics.jsonl")))(t)
	contains(t, string(log), `"eval/sentiment/accuracy7":`, `"eval/sentiment/constant_mae":`)
	eval := append([]string{"eval", "--checkpoint", dir, "--task", "sentiment"}, set...)
	stdout, _ := must(t, exitDone, append(eval, "--set", "eval.sentiment.decay=0.0001")...)
	contains(t, stdout, "sentiment: 40 training utterances, 20 utterances, 4 features", "linear layer           100.00        100.00", "always the mean")
	stdout, _ = must(t, exitDone, append(eval, "--json", "--set", "eval.sentiment.train_texts="+trainTexts, "--set", "eval.sentiment.test_texts="+testTexts)...)
	if m := parseJSON(t, stdout); m["utterances"] != 20. || m["features"].(float64) <= 4 || m["values"].(map[string]any)["pearson"].(float64) < .9 {
		t.Errorf("%s", stdout)
	}
	fails(t, exitFailed, append(eval, "--set", "eval.sentiment.train_texts="+testTexts, "--set", "eval.sentiment.test_texts="+testTexts), "test.txt: it has 20 lines and train.safetensors 40 utterances: write the words of one on each line")
	fails(t, exitUsage, append(eval, "--set", "eval.sentiment.train_texts="+testTexts), "eval.sentiment.test_texts: must name a text file beside the other one")
	fails(t, exitUsage, append(eval, "--set", "eval.sentiment.test=none.npz"), "eval.sentiment.test: there is no such file")
	fails(t, exitUsage, append(eval, "--set", "eval.sentiment.test=x.pkl"), "eval.sentiment.test: must end in .npz or .safetensors")
	fails(t, exitUsage, append(eval, "--set", `eval.sentiment.modalities=["smell"]`), "eval.sentiment.modalities: must be some of text, audio, vision")
	fails(t, exitUsage, append(eval, "--set", "eval.sentiment.modalities=[]"), "eval.sentiment.modalities: must name a modality")
	fails(t, exitUsage, append(eval, "--set", "eval.sentiment.train=", "--set", "eval.sentiment.test="), "eval.sentiment.train: must name a file of utterances")
	fails(t, exitFailed, append(eval, "--set", `eval.sentiment.modalities=["text"]`), "train.safetensors")
}
