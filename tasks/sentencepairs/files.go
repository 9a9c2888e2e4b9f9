package sentencepairs

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	pairs "github.com/geoalign/geoalign/data/sentencepairs"
)

// Files names the files of data.kind = "sentence_pairs": pairs of sentences with a class or a score, in the forms in which
// the task is given out ([sentences.md](sentences.md)).
type Files struct {
	// mnli | mnli-mm | qnli | snli | qqp | mrpc | rte | stsb | sick | sick-e | sts12 | sts13 | sts14 | sts15 | sts16:
	// which columns a file has and which classes or scores
	Task string `toml:"task"`
	// training files: names, ranges such as part-{00..09}.tsv, patterns such as train-*.parquet, or a folder of the
	// task, whose files are found by their names
	TrainFiles []string `toml:"train_files"`
	// validation files
	ValFiles []string `toml:"val_files"`
	// test files
	TestFiles []string `toml:"test_files"`
}

// Defaults implements section.Section.
func (s *Files) Defaults() { *s = Files{Task: "mnli"} }

// Check implements section.Section. What training asks of the files is checked by package config.
func (s *Files) Check(k *section.Checker) {
	k.OneOf("task", pairs.Names()...)
	k.Training("data.kind", k.Value("data.kind") != Name || k.Has(section.SentencePairs), `must not be "`+Name+`"`,
		fmt.Sprintf("model.system %q reads no pairs of sentences: evaluate on them with eval.sentences", k.System))
}

// Split returns the files of a split: train, val or test.
func (s *Files) Split(name string) []string {
	return map[string][]string{"train": s.TrainFiles, "val": s.ValFiles, "test": s.TestFiles}[name]
}

// Of returns the task of the pairs, which a configuration that was checked has.
func (s *Files) Of() pairs.Task {
	t, _ := pairs.TaskOf(s.Task)
	return t
}
