package source

import (
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/utterances"
	"github.com/geoalign/geoalign/tasks/sentiment"
)

// SentimentInputs lists the files of eval.sentiment.
func SentimentInputs(cfg config.Config) (list []Input) {
	if cfg.Model.Stored() || cfg.Model.ImagesOnly() {
		return nil
	}
	s := cfg.Eval.Sentiment
	for _, x := range []struct{ name, path string }{{"train", s.Train}, {"test", s.Test}, {"train_texts", s.TrainTexts}, {"test_texts", s.TestTexts}} {
		list = append(list, named(cfg, "eval.sentiment."+x.name, x.path, false)...)
	}
	return list
}

// OpenSentiment reads the files of eval.sentiment.
func OpenSentiment(cfg config.Config) (p sentiment.Parts, err error) {
	s := cfg.Eval.Sentiment
	if s.Train == "" {
		return p, config.Errors{{Path: "eval.sentiment.train", Value: "", Msg: "must name a file of utterances", Hint: "and eval.sentiment.test another one: docs/sentences.md says what they hold"}}
	}
	if err := CheckInputs(SentimentInputs(cfg)); err != nil {
		return p, err
	}
	if p.Train, err = openSentiment(cfg, s.Train, s.TrainTexts); err != nil {
		return p, fmt.Errorf("eval.sentiment.train: %w", err)
	}
	if p.Test, err = openSentiment(cfg, s.Test, s.TestTexts); err != nil {
		return p, fmt.Errorf("eval.sentiment.test: %w", err)
	}
	return p, nil
}

func openSentiment(cfg config.Config, path, texts string) (s sentiment.Part, err error) {
	if s.Set, err = utterances.Load(Below(cfg.Data.Root, path), cfg.Eval.Sentiment.Modalities); err != nil || texts == "" {
		return s, err
	}
	err = table.Lines(Below(cfg.Data.Root, texts), func(_ int, line string) error {
		s.Sentences = append(s.Sentences, line)
		return nil
	})
	if err != nil {
		return s, err
	}
	if have, want := len(s.Sentences), len(s.Set.Labels); have != want {
		return s, &data.RecordError{File: texts, Index: -1, Err: fmt.Errorf("it has %d lines and %s %d utterances: write the words of one on each line", have, path, want)}
	}
	return s, nil
}
