package config

import (
	"fmt"
	"slices"
)

// filesOf is what a kind of data with files for each split has for the split of that name.
func filesOf[T any](name string, train, val, test T) (files T) {
	switch name {
	case "train":
		return train
	case "val":
		return val
	case "test":
		return test
	}
	return files
}

// splitFiles checks train_files, val_files and test_files of a kind of data: training needs the
// first, and an evaluation beside it the files of its split.
func (k *checker) splitFiles(kind string, split func(name string) []string, c *Config) {
	key := func(name string) string { return "data." + kind + "." + name + "_files" }
	for _, name := range []string{"train", "val", "test"} {
		k.Require(key(name), !slices.Contains(split(name), ""), "must not hold an empty file name")
	}
	if c.Data.Kind != kind {
		return
	}
	k.Training(key("train"), len(split("train")) > 0, fmt.Sprintf("must name at least one file for data.kind %q", kind))
	ownFiles := c.Model.TextsOnly() && !c.Model.JudgesPairs() && len(c.Eval.Sentences.Tasks) > 0 // which are evaluated in the place of a split
	if c.Train.EvalEverySteps > 0 && !ownFiles && (c.Eval.Split == "val" || c.Eval.Split == "test") {
		k.Training(key(c.Eval.Split), len(split(c.Eval.Split)) > 0, "must name at least one file",
			"or set eval.split or train.eval_every_steps = 0")
	}
}
