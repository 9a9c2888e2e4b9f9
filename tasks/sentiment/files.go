package sentiment

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/data/utterances"
)

// Inputs lists the files of the utterances.
func (s *Eval) Inputs(in source.Setup) (list []source.Input) {
	for _, x := range []struct{ name, path string }{{"train", s.Train}, {"test", s.Test}, {"train_texts", s.TrainTexts},
		{"test_texts", s.TestTexts}} {
		list = append(list, source.Named(in, "eval.sentiment."+x.name, x.path, false)...)
	}
	return list
}

// Open reads them.
func (s *Eval) Open(in source.Setup) (p Parts, err error) {
	if s.Train == "" {
		return p, section.Errors{{Path: "eval.sentiment.train", Value: "", Msg: "must name a file of utterances",
			Hint: "and eval.sentiment.test another one: docs/sentences.md says what they hold"}}
	}
	if err := source.CheckInputs(s.Inputs(in)); err != nil {
		return p, err
	}
	if p.Train, err = s.open(in, s.Train, s.TrainTexts); err != nil {
		return p, fmt.Errorf("eval.sentiment.train: %w", err)
	}
	if p.Test, err = s.open(in, s.Test, s.TestTexts); err != nil {
		return p, fmt.Errorf("eval.sentiment.test: %w", err)
	}
	return p, nil
}

func (s *Eval) open(in source.Setup, path, texts string) (p Part, err error) {
	if p.Set, err = utterances.Load(source.Below(in.Data.Root, path), s.Modalities); err != nil || texts == "" {
		return p, err
	}
	if p.Sentences, err = table.ReadLines(source.Below(in.Data.Root, texts)); err != nil {
		return p, err
	}
	if have, want := len(p.Sentences), len(p.Set.Labels); have != want {
		return p, table.Whole(texts, fmt.Errorf(
			"it has %d lines and %s %d utterances: write the words of one on each line", have, path, want))
	}
	return p, nil
}
