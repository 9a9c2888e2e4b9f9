package config

import "strings"

// SentenceTasks are the tasks of sentence pairs, which package data/sentencepairs reads.
var SentenceTasks = []string{"mnli", "mnli-mm", "qnli", "snli", "qqp", "mrpc", "rte", "stsb", "sick", "sick-e", "sts12", "sts13", "sts14", "sts15", "sts16"}

// SentencePairs names the files of data.kind = "sentence_pairs": pairs of sentences with a class or a score, in the forms in which
// the task is given out ([sentences.md](sentences.md)).
type SentencePairs struct {
	Task       string   `toml:"task"`        // mnli | mnli-mm | qnli | snli | qqp | mrpc | rte | stsb | sick | sick-e | sts12 | sts13 | sts14 | sts15 | sts16: which columns a file has and which classes or scores
	TrainFiles []string `toml:"train_files"` // training files: names, ranges such as part-{00..09}.tsv, patterns such as train-*.parquet, or a folder of the task, whose files are found by their names
	ValFiles   []string `toml:"val_files"`   // validation files
	TestFiles  []string `toml:"test_files"`  // test files
}

func (s *SentencePairs) defaults() { *s = SentencePairs{Task: "mnli"} }

func (s *SentencePairs) check(k *checker, c *Config) {
	k.OneOf("data.sentence_pairs.task", SentenceTasks...)
	k.splitFiles(SentencePairsKind, s.Split, c)
	if c.Data.Kind == SentencePairsKind {
		k.Training("data.kind", c.Model.traits().sentencePairs, `must not be "`+SentencePairsKind+`"`, c.Model.named()+" reads no pairs of sentences: evaluate on them with eval.sentences")
	}
}

// SentencePairsKind is the data.kind of pairs of sentences.
const SentencePairsKind = "sentence_pairs"

// Split returns the files of a split: train, val or test.
func (s SentencePairs) Split(name string) []string {
	return filesOf(name, s.TrainFiles, s.ValFiles, s.TestFiles)
}

// SentenceTask is an item of eval.sentences.tasks.
type SentenceTask struct {
	Name  string
	Test  string // file or folder of the pairs that are evaluated; empty: found in eval.sentences.folder
	Train string // file of those that rules are fitted to; empty: found where Test is a folder
}

// sentenceTask reads "task", "task=test" or "task=test,train". ok is false for another form.
func sentenceTask(item string) (t SentenceTask, ok bool) {
	name, paths, named := strings.Cut(item, "=")
	t.Name = strings.TrimSpace(name)
	test, train, fitted := strings.Cut(paths, ",")
	t.Test, t.Train = strings.TrimSpace(test), strings.TrimSpace(train)
	return t, (!named || t.Test != "") && (!fitted || t.Train != "" && !strings.Contains(t.Train, ","))
}
