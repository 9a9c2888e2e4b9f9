package evalfiles

import (
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/utterances"
)

// Sentiment is the utterances of a part of eval.sentiment.
type Sentiment struct {
	Set       *utterances.Set
	Sentences []string // their words; nil: they are not read
}

// SentimentInputs lists the files of eval.sentiment.
func SentimentInputs(cfg config.Config) (list []source.Input) {
	if cfg.Has(section.Stored) || cfg.Has(section.ImagesAlone) {
		return nil
	}
	s := cfg.Eval.Sentiment
	for _, x := range []struct{ name, path string }{{"train", s.Train}, {"test", s.Test}, {"train_texts", s.TrainTexts}, {"test_texts", s.TestTexts}} {
		list = append(list, source.Named(cfg.Source(), "eval.sentiment."+x.name, x.path, false)...)
	}
	return list
}

// OpenSentiment reads the files of eval.sentiment.
func OpenSentiment(cfg config.Config) (train, test Sentiment, err error) {
	s := cfg.Eval.Sentiment
	if s.Train == "" {
		return train, test, config.Errors{{Path: "eval.sentiment.train", Value: "", Msg: "must name a file of utterances", Hint: "and eval.sentiment.test another one: docs/sentences.md says what they hold"}}
	}
	if err := source.CheckInputs(SentimentInputs(cfg)); err != nil {
		return train, test, err
	}
	if train, err = openSentiment(cfg, s.Train, s.TrainTexts); err != nil {
		return train, test, fmt.Errorf("eval.sentiment.train: %w", err)
	}
	if test, err = openSentiment(cfg, s.Test, s.TestTexts); err != nil {
		return train, test, fmt.Errorf("eval.sentiment.test: %w", err)
	}
	return train, test, nil
}

func openSentiment(cfg config.Config, path, texts string) (s Sentiment, err error) {
	if s.Set, err = utterances.Load(source.Below(cfg.Data.Root, path), cfg.Eval.Sentiment.Modalities); err != nil || texts == "" {
		return s, err
	}
	err = table.Lines(source.Below(cfg.Data.Root, texts), func(_ int, line string) error {
		s.Sentences = append(s.Sentences, line)
		return nil
	})
	if err != nil {
		return s, err
	}
	if have, want := len(s.Sentences), len(s.Set.Labels); have != want {
		return s, table.Whole(texts, fmt.Errorf("it has %d lines and %s %d utterances: write the words of one on each line", have, path, want))
	}
	return s, nil
}
