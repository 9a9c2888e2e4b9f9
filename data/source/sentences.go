package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentences"
)

// sentenceLists is data.kind = "sentences": texts without images. Positives and hard negatives are of training alone.
var sentenceLists = func() lists {
	l := sentenceTables
	l.load = func(ctx context.Context, cfg config.Config, split string, o Options) (data.Cached, error) {
		if split != "train" {
			cfg.Data.Sentences.Positive, cfg.Data.Sentences.Negative = "", ""
		}
		return sentenceTables.load(ctx, cfg, split, o)
	}
	return l
}()

// sentenceTables are files of sentences.
var sentenceTables = fileLists("sentences", func(d config.Data, split string) []string { return d.Sentences.Split(split) },
	func(_ context.Context, _ string, paths []string, cfg config.Config, o Options) (data.Cached, error) {
		d := cfg.Data
		set, err := sentences.Load(paths, sentences.Config{Sentence: d.Sentences.Sentence, Positive: d.Sentences.Positive, Negative: d.Sentences.Negative,
			MaxBadShare: d.MaxBadShare, Clean: d.Clean, MaxWords: keptWords(d)})
		return opened(set, err)
	})

// keptWords is the largest number of words of which all can be kept.
func keptWords(d config.Data) int {
	n := d.Tokens - 1 // [CLS] takes one
	if d.Clean == "albef" {
		n = min(n, d.MaxWords)
	}
	return n
}

// alternating is a stream of pairs with batches of data.sentences between those of pairs.
func alternating(ctx context.Context, pairs data.Stream, cfg config.Config, o Options) (data.Stream, error) {
	s, err := imageFiles(sentenceLists).Stream(ctx, cfg, o)
	if err != nil {
		return nil, err
	}
	return data.NewAlternating(pairs, s, cfg.Train.BatchSize, cfg.Data.Sentences.Batches)
}
