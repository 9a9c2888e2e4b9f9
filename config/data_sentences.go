package config

import "github.com/geoalign/geoalign/config/section"

// SentenceFiles names the files of data.kind = "sentences", for model.system "simcse", and of sentences beside pairs. A file whose
// name ends in .csv, .tsv, .json, .jsonl or .parquet is a table with a sentence in each row, every other file has a sentence on
// each line.
type SentenceFiles struct {
	TrainFiles []string `toml:"train_files"`                               // training files
	ValFiles   []string `toml:"val_files"`                                 // validation files
	TestFiles  []string `toml:"test_files"`                                // test files
	Sentence   string   `toml:"sentence"`                                  // column of the sentence in tables
	Positive   string   `toml:"positive"`                                  // column of a sentence that follows from it or says the same, its positive in training; empty: a sentence is its own
	Batches    int      `toml:"batches" read:"beside pairs" max:"1000000"` // beside another data.kind, for objective.mcse: batches of these sentences after each batch of pairs; 0: none
	Negative   string   `toml:"negative"`                                  // column of a sentence that looks like it and says something else, its hard negative; empty: there are none
}

func (f *SentenceFiles) defaults() { *f = SentenceFiles{Sentence: "sentence"} }

func (f *SentenceFiles) check(k *checker, c *Config) {
	k.splitFiles("sentences", f.Split, c)
	k.Require("data.sentences.sentence", f.Sentence != "", "must name a column")
	k.Require("data.sentences.negative", f.Negative == "" || f.Positive != "", "must be empty without data.sentences.positive", "a hard negative stands beside a positive")
	k.NotNegative("data.sentences.batches")
	if c.MixesSentences() {
		k.Training("data.sentences.train_files", len(f.TrainFiles) > 0, "must name at least one file with data.sentences.batches > 0")
		k.Training("data.sentences.positive", f.Positive == "", "must be empty with data.sentences.batches > 0", "beside pairs a sentence is its own positive")
		k.Training("data.sentences.batches", c.Objective.MCSE.On() && c.Objective.SimCSE.On(), "must be 0 without objective.simcse.weight and objective.mcse.weight > 0",
			"the other losses compare the images of a batch, which sentences have not")
		k.Training("data.sentences.batches", !c.Has(section.BatchImages),
			"must be 0 with losses on images besides objective.mcse", "they compare the images of a batch, which sentences have not")
	}
	if c.Data.Kind == "sentences" {
		k.Require("data.kind", c.Model.TextsOnly() && !c.Model.JudgesPairs(), `must not be "sentences"`, c.Model.named()+` reads images: sentences alone are for model.system "simcse"`)
	}
}

// Split returns the files of a split: train, val or test.
func (f SentenceFiles) Split(name string) []string {
	return filesOf(name, f.TrainFiles, f.ValFiles, f.TestFiles)
}

// MixesSentences says whether batches of sentences stand between those of pairs.
func (c Config) MixesSentences() bool {
	return c.Data.Kind != "sentences" && c.Data.Sentences.Batches > 0 && c.Model.traits().captions && c.Model.traits().words
}

// HasPositives says whether a sentence of the training data has a positive beside it.
func (c Config) HasPositives() bool {
	return c.Data.Kind == "sentences" && c.Data.Sentences.Positive != ""
}

// HasNegatives says whether it has a hard negative too.
func (c Config) HasNegatives() bool { return c.HasPositives() && c.Data.Sentences.Negative != "" }

// TextsOfRow returns the texts of a row of the batch that pass the text tower of a training step.
func (c Config) TextsOfRow() int {
	switch o := c.Objective; {
	case o.SentencePairs.Weight > 0 && o.SentencePairs.Encoding == PairsSeparate:
		return 2
	case c.HasNegatives():
		return 3
	case o.SimCSE.On() || o.MCSE.On():
		return 2
	}
	return 1
}
