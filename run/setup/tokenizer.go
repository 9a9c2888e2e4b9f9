package setup

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Tokenizer returns the tokenizer of a run, openTokenizer's, whose template leaves room for a word.
// progress is told how far captions are read that it is learned from, where that takes long, and may be nil.
func Tokenizer(ctx context.Context, cfg config.Config, from *checkpoint.Checkpoint,
	progress func(phase string, done, of int)) (*tokenizer.Tokenizer, error) {
	t, err := openTokenizer(ctx, cfg, from, progress)
	if err != nil || t == nil {
		return nil, err
	}
	if n := t.Around(); cfg.Data.Tokens <= n {
		return nil, config.Errors{{Path: "data.tokens", Value: cfg.Data.Tokens,
			Msg: fmt.Sprintf("must be > %d: so many tokens stand around every text with this tokenizer", n)}}
	}
	return t, nil
}

// openTokenizer returns the tokenizer of a run: that of the checkpoint it goes on from (nil: it is new) or starts
// from (init.checkpoint, with the words of init.new_words), the file that data.vocab names, or one learned from the
// training captions. It is nil for a system without texts.
func openTokenizer(ctx context.Context, cfg config.Config, from *checkpoint.Checkpoint,
	progress func(phase string, done, of int)) (*tokenizer.Tokenizer, error) {
	if cfg.Has(section.Stored) {
		return nil, nil
	}
	if from != nil {
		return train.OpenTokenizer(from)
	}
	if cfg.Init.Checkpoint != "" { // its embeddings are those of its own vocabulary
		ck, err := InitCheckpoint(cfg.Init.Checkpoint)
		if err != nil {
			return nil, fmt.Errorf("init.checkpoint: %w", err)
		}
		defer ck.Close()
		t, err := train.OpenTokenizer(ck)
		if err != nil || t == nil || cfg.Init.NewWords == 0 {
			return t, err
		}
		return withNewWords(ctx, cfg, t, progress)
	}
	if cfg.Data.Vocab != "" {
		t, err := tokenizer.Load(source.Below(cfg.Data.Root, cfg.Data.Vocab), cfg.Data.Template)
		if err != nil {
			return nil, fmt.Errorf("data.vocab: %w", err)
		}
		return t, Classless(cfg, t)
	}
	captions, err := source.Texts(ctx, cfg.Source(), source.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	learn := func() (*tokenizer.Tokenizer, error) {
		if d := cfg.Data; d.LearnsWords() {
			return tokenizer.LearnWords(slices.Values(captions), d.VocabSize, d.VocabMinCount)
		}
		return tokenizer.Learn(slices.Values(captions), cfg.Data.VocabSize)
	}
	t, err := learn()
	if err != nil {
		return nil, fmt.Errorf("data.vocab: is empty, so the vocabulary is learned from the %s of the train split: %w: give its entries captions, or name a vocabulary",
			words.Count(len(captions), "caption"), err)
	}
	return t, nil
}

// withNewWords is the tokenizer of a checkpoint with init.new_words of the training texts.
func withNewWords(ctx context.Context, cfg config.Config, t *tokenizer.Tokenizer,
	progress func(phase string, done, of int)) (*tokenizer.Tokenizer, error) {
	texts, err := source.Texts(ctx, cfg.Source(), source.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	more, err := t.Extended(slices.Values(texts), cfg.Init.NewWords)
	if err != nil {
		return nil, config.Errors{{Path: "init.new_words", Value: cfg.Init.NewWords, Msg: "must be 0: " + err.Error()}}
	}
	return more, nil
}

// Classless refuses the first token for a text where it is none that the tokenizer puts there, but a word.
func Classless(cfg config.Config, t *tokenizer.Tokenizer) error {
	if cfg.Has(section.Stored) || !cfg.Model.Text.ReadsClass() || t.ClsID() >= 0 {
		return nil
	}
	return config.Errors{{Path: "model.text.pool", Value: cfg.Model.Text.Pool,
		Msg:  fmt.Sprintf("must be mean or end: class reads the first token of a text, and the tokenizer in %s puts none before the words", cfg.Data.Vocab),
		Hint: setFlag("model.text.pool", "mean")}}
}
