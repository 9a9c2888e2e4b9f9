// Package sentencepairs reads the tasks of sentence pairs: two sentences with a class, as in MNLI and MRPC, or with a
// score of how alike they are, as in the STS tasks. A file may be as GLUE, SentEval, the authors or the Hugging Face
// hub give it out.
//
//	task, err := sentencepairs.TaskOf("mrpc")
//	set, err := sentencepairs.Load(task, []string{"MRPC/dev.tsv"}, sentencepairs.Options{MaxBadShare: 0.01})
//
// Shape letters: L tokens of a sentence.
package sentencepairs

import (
	"fmt"
	"slices"
	"strings"
)

// Task is a task of sentence pairs. Its pairs have classes, or scores where there are no classes.
type Task struct {
	Name    string
	Classes []string // in the order of their numbers, which is that of the Hugging Face hub
	Near    []int32  // the classes from those of the most similar pairs to those of the least; nil of scores
	Low     float64  // least score
	High    float64  // largest score

	a, b, label []string            // names of columns, of which the first that a file has is read
	headless    []int               // places of a, b and label in tables without names; nil: they have names
	folders     []string            // names of its folder
	files       map[string][]string // names of files of its own by split, before the common ones
	alone       string              // folder in which alone the common names of files are those of the task; empty: any
	layout      bool                // a folder of STS.input.*.txt and STS.gs.*.txt
}

// Scored says whether pairs have scores, instead of classes.
func (t Task) Scored() bool { return t.Classes == nil }

// Alike is the score above which pairs mean nearly the same: four fifths of the scale, 4 of 5 as in SimCSE (Gao et al.
// 2021, section 3).
func (t Task) Alike() float64 { return t.Low + 0.8*(t.High-t.Low) }

// Names of splits.
const (
	Train = "train"
	Val   = "val"
	Test  = "test"
)

// Classes of the tasks.
var (
	entailments = []string{"entailment", "neutral", "contradiction"}
	entailed    = []string{"entailment", "not_entailment"}
)

// common are the names of files that exports of any task have.
var common = map[string][]string{
	Train: exports("train"),
	Val: append([]string{"dev.tsv", "dev.json", "dev.jsonl", "dev.csv", "val.tsv", "val.json", "val.jsonl",
		"val.csv"}, exports("validation")...),
	Test: exports("test"),
}

// exports are the names of files that exports of a split have.
func exports(split string) []string {
	return []string{split + ".tsv", split + ".json", split + ".jsonl", split + ".csv", split + ".parquet",
		split + "-*.parquet", "data/" + split + "-*.parquet"}
}

// tasks are those that there are, in the order of the documentation.
var tasks = []Task{
	{Name: "mnli", Classes: entailments, Near: []int32{0, 1, 2},
		a: []string{"sentence1", "premise"}, b: []string{"sentence2", "hypothesis"}, label: []string{"gold_label", "label"}, folders: []string{"MNLI", "multinli_1.0"},
		files: map[string][]string{Train: {"multinli_1.0_train.jsonl", "multinli_1.0_train.txt"},
			Val: append([]string{"dev_matched.tsv", "multinli_1.0_dev_matched.jsonl", "multinli_1.0_dev_matched.txt"},
				exports("validation_matched")...)}},
	{Name: "mnli-mm", Classes: entailments, Near: []int32{0, 1, 2},
		a: []string{"sentence1", "premise"}, b: []string{"sentence2", "hypothesis"},
		label: []string{"gold_label", "label"}, folders: []string{"MNLI-mm", "MNLI", "multinli_1.0"}, alone: "MNLI-mm",
		files: map[string][]string{Train: {"multinli_1.0_train.jsonl", "multinli_1.0_train.txt"},
			Val: append([]string{"dev_mismatched.tsv", "multinli_1.0_dev_mismatched.jsonl",
				"multinli_1.0_dev_mismatched.txt"}, exports("validation_mismatched")...)}},
	{Name: "qnli", Classes: entailed, Near: []int32{0, 1},
		a: []string{"question"}, b: []string{"sentence"}, label: []string{"label"}, folders: []string{"QNLI", "QNLIv2"}},
	{Name: "snli", Classes: entailments, Near: []int32{0, 1, 2},
		a: []string{"sentence1", "premise"}, b: []string{"sentence2", "hypothesis"}, label: []string{"gold_label", "label"}, folders: []string{"SNLI", "snli_1.0"},
		files: map[string][]string{Train: {"snli_1.0_train.jsonl", "snli_1.0_train.txt"},
			Val: {"snli_1.0_dev.jsonl", "snli_1.0_dev.txt"}, Test: {"snli_1.0_test.jsonl", "snli_1.0_test.txt"}}},
	{Name: "qqp", Classes: []string{"not_duplicate", "duplicate"}, Near: []int32{1, 0},
		a: []string{"question1"}, b: []string{"question2"}, label: []string{"is_duplicate", "label"}, folders: []string{"QQP"}},
	{Name: "mrpc", Classes: []string{"not_equivalent", "equivalent"}, Near: []int32{1, 0},
		a: []string{"#1 String", "sentence1"}, b: []string{"#2 String", "sentence2"}, label: []string{"Quality", "label"}, folders: []string{"MRPC"},
		files: map[string][]string{Train: {"msr_paraphrase_train.txt"}, Test: {"msr_paraphrase_test.txt"}}},
	{Name: "rte", Classes: entailed, Near: []int32{0, 1},
		a: []string{"sentence1"}, b: []string{"sentence2"}, label: []string{"label"}, folders: []string{"RTE"}},
	{Name: "stsb", High: 5, headless: []int{5, 6, 4},
		a: []string{"sentence1"}, b: []string{"sentence2"}, label: []string{"score", "label"}, folders: []string{"STS-B", "STSB", "STSBenchmark"},
		files: map[string][]string{Train: {"sts-train.csv"}, Val: {"sts-dev.csv"}, Test: {"sts-test.csv"}}},
	{Name: "sick", Low: 1, High: 5,
		a: []string{"sentence_A", "sentence1"}, b: []string{"sentence_B", "sentence2"}, label: []string{"relatedness_score", "score"}, folders: []string{"SICK"}, files: sickFiles},
	{Name: "sick-e", Classes: entailments, Near: []int32{0, 1, 2},
		a: []string{"sentence_A"}, b: []string{"sentence_B"}, label: []string{"entailment_judgment", "entailment_label", "label"}, folders: []string{"SICK"}, files: sickFiles},
	sts("sts12"), sts("sts13"), sts("sts14"), sts("sts15"), sts("sts16"),
}

// sickFiles are the names that SentEval has.
var sickFiles = map[string][]string{Train: {"SICK_train.txt"}, Val: {"SICK_trial.txt"},
	Test: {"SICK_test_annotated.txt"}}

// sts is a task of SemEval.
func sts(name string) Task {
	year := strings.ToUpper(name)
	return Task{Name: name, High: 5, layout: true, a: []string{"sentence1"}, b: []string{"sentence2"},
		label:   []string{"score", "label"},
		folders: []string{year + "-en-test", year}}
}

// Names lists the tasks.
func Names() (list []string) {
	for _, t := range tasks {
		list = append(list, t.Name)
	}
	return list
}

// TaskOf returns the task of a name. The error lists those that there are.
func TaskOf(name string) (Task, error) {
	i := slices.IndexFunc(tasks, func(t Task) bool { return t.Name == name })
	if i < 0 {
		return Task{}, fmt.Errorf("there is no task of sentence pairs %q: the tasks are %s", name,
			strings.Join(Names(), ", "))
	}
	return tasks[i], nil
}
