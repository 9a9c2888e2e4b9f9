package source

import (
	"context"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentences"
)

// SentenceFiles names the files of data.kind = "sentences", for model.system "simcse", and of sentences beside pairs. A
// file whose name ends in .csv, .tsv, .json, .jsonl or .parquet is a table with a sentence in each row, every other
// file has a sentence on each line.
type SentenceFiles struct {
	SplitFiles
	// column of the sentence in tables
	Sentence string `toml:"sentence"`
	// column of a sentence that follows from it or says the same, its positive in training; empty: a sentence is its
	// own
	Positive string `toml:"positive"`
	// beside another data.kind, for objective.mcse: batches of these sentences after each batch of pairs; 0: none
	Batches int `toml:"batches" when:"objective.mcse.weight>0 and data.kind!=sentences" max:"1000000"`
	// column of a sentence that looks like it and says something else, its hard negative; empty: there are none
	Negative string `toml:"negative"`
}

// Defaults implements section.Defaulter.
func (f *SentenceFiles) Defaults() { *f = SentenceFiles{Sentence: "sentence"} }

// Check implements section.Checked.
func (f *SentenceFiles) Check(k *section.Checker) {
	splitFiles(k, "sentences", f.Split)
	k.Require("data.sentences.sentence", f.Sentence != "", "must name a column")
	k.Require("data.sentences.negative", f.Negative == "" || f.Positive != "",
		"must be empty without data.sentences.positive", "a hard negative stands beside a positive")
	k.NotNegative("data.sentences.batches")
	if k.Has(section.Mixed) {
		k.Training("data.sentences.train_files", len(f.TrainFiles) > 0,
			"must name at least one file with data.sentences.batches > 0")
		k.Training("data.sentences.positive", f.Positive == "", "must be empty with data.sentences.batches > 0",
			"beside pairs a sentence is its own positive")
		k.Training("data.sentences.batches", k.Number("objective.mcse.weight") > 0 &&
			k.Number("objective.simcse.weight") > 0,
			"must be 0 without objective.simcse.weight and objective.mcse.weight > 0",
			"the other losses compare the images of a batch, which sentences have not")
	}
	if section.Of[Data](k).Kind == "sentences" {
		k.Require("data.kind", k.Has(section.Sentences) && !k.Has(section.SentencePairs), `must not be "sentences"`,
			k.Named()+` reads images: sentences alone are for model.system "simcse"`)
	}
}

// sentenceLists is data.kind = "sentences": texts without images. Positives and hard negatives are of training alone.
var sentenceLists = func() lists {
	l := sentenceTables
	l.load = func(ctx context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
		if split != "train" {
			cfg.Data.Sentences.Positive, cfg.Data.Sentences.Negative = "", ""
		}
		return sentenceTables.load(ctx, cfg, split, o)
	}
	return l
}()

// sentenceTables are files of sentences.
var sentenceTables = fileLists("sentences", func(d Data, split string) []string { return d.Sentences.Split(split) },
	func(_ context.Context, _ string, paths []string, cfg Setup, o Options) (data.Cached, error) {
		d := cfg.Data
		set, err := sentences.Load(paths,
			sentences.Config{Sentence: d.Sentences.Sentence, Positive: d.Sentences.Positive,
				Negative: d.Sentences.Negative, MaxBadShare: d.MaxBadShare, Clean: d.Clean, MaxWords: keptWords(d)})
		return opened(set, err)
	})

// keptWords is the largest number of words of which all can be kept.
func keptWords(d Data) int {
	n := d.Tokens - 1 // [CLS] takes one
	if d.Clean == "albef" {
		n = min(n, d.MaxWords)
	}
	return n
}

// alternating is a stream of pairs with batches of data.sentences between those of pairs.
func alternating(ctx context.Context, pairs data.Stream, cfg Setup, o Options) (data.Stream, error) {
	s, err := imageFiles(sentenceLists).Stream(ctx, cfg, o)
	if err != nil {
		return nil, err
	}
	return data.NewAlternating(pairs, s, cfg.BatchSize, cfg.Data.Sentences.Batches)
}

func (*SentenceFiles) kind() Kind { return imageFiles(sentenceLists) }
