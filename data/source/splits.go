package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
)

// SplitFiles names the files of each split.
type SplitFiles struct {
	// training files: names, ranges such as part-{000..099}.tar or patterns such as part-*.json
	TrainFiles []string `toml:"train_files"`
	// validation files
	ValFiles []string `toml:"val_files"`
	// test files
	TestFiles []string `toml:"test_files"`
}

// Split returns the files of a split: train, val or test.
func (f SplitFiles) Split(name string) []string {
	return filesOf(name, f.TrainFiles, f.ValFiles, f.TestFiles)
}

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
func splitFiles(k *section.Checker, kind string, split func(name string) []string) {
	key := func(name string) string { return "data." + kind + "." + name + "_files" }
	for _, name := range []string{"train", "val", "test"} {
		k.Require(key(name), !slices.Contains(split(name), ""), "must not hold an empty file name")
	}
	if section.Of[Data](k).Kind != kind {
		return
	}
	k.Training(key("train"), len(split("train")) > 0, fmt.Sprintf("must name at least one file for data.kind %q", kind))
	// which are evaluated instead of a split
	ownFiles := k.Has(section.Sentences) && !k.Has(section.SentencePairs) &&
		len(k.Value("eval.sentences.tasks").([]string)) > 0
	if k.Number("train.eval_every_steps") > 0 && !ownFiles && (evaluated(k) == "val" || evaluated(k) == "test") {
		k.Training(key(evaluated(k)), len(split(evaluated(k))) > 0, "must name at least one file",
			"or set eval.split or train.eval_every_steps = 0")
	}
}

// fileLists is a kind of data whose configuration lists the files of each split under train_files, val_files and
// test_files. names returns them, load opens what they stand for.
func fileLists(kind string, names func(d Data, split string) []string,
	load func(ctx context.Context, split string, paths []string, cfg Setup, o Options) (data.Cached, error)) lists {
	key := func(split string) string { return "data." + kind + "." + split + "_files" }
	return lists{
		load: func(ctx context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
			list := names(cfg.Data, split)
			if len(list) == 0 {
				return nil, unnamed(key(split), "at least one file")
			}
			paths, err := data.Expand(cfg.Data.Root, list)
			if err != nil {
				return nil, err
			}
			return load(ctx, split, paths, cfg, o)
		},
		splits: having(func(d Data, split string) bool { return len(names(d, split)) > 0 }),
		inputs: func(cfg Setup, split string) (list []Input) {
			return append(expanded(cfg, key(split), names(cfg.Data, split)), root(cfg)) // of the images
		},
		mayLack: true,
	}
}

// having lists the splits that a configuration has, as has says.
func having(has func(d Data, split string) bool) func(cfg Setup) []string {
	return func(cfg Setup) (list []string) {
		for _, split := range Splits {
			if has(cfg.Data, split) {
				list = append(list, split)
			}
		}
		return list
	}
}

// unnamed is the error of a split whose key names none of what it should.
func unnamed(key, what string) error {
	return section.Errors{{Path: key, Msg: "must name " + what, Hint: "or choose another split"}}
}

// evaluated is the split that is evaluated while a model is trained.
func evaluated(k *section.Checker) string { return k.Value("eval.split").(string) }
