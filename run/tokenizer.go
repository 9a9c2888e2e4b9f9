package run

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// vocabScenes is the number of scenes whose captions a vocabulary is learned from:
// they say everything that scenes can say.
const vocabScenes = 2000

// OpenTokenizer returns the tokenizer of a run: that of the checkpoint it goes on
// from (nil: it is new) or starts from (init.checkpoint), the file that data.vocab names, or one
// learned from the training captions.
func OpenTokenizer(cfg config.Config, from *checkpoint.Checkpoint) (*tokenizer.Tokenizer, error) {
	if from != nil {
		return train.OpenTokenizer(from)
	}
	if cfg.Init.Checkpoint != "" { // its embeddings are those of its own vocabulary
		ck, err := checkpoint.Load(cfg.Init.Checkpoint)
		if err != nil {
			return nil, fmt.Errorf("init.checkpoint: %w", err)
		}
		defer ck.Close()
		return train.OpenTokenizer(ck)
	}
	if cfg.Data.Vocab != "" {
		t, err := tokenizer.Load(source.Below(cfg.Data.Root, cfg.Data.Vocab))
		if err != nil {
			return nil, fmt.Errorf("data.vocab: %w", err)
		}
		return t, nil
	}
	captions, err := trainCaptions(cfg)
	if err != nil {
		return nil, err
	}
	return tokenizer.Learn(slices.Values(captions), cfg.Data.VocabSize)
}

// trainCaptions returns the cleaned captions of the training data.
func trainCaptions(cfg config.Config) ([]string, error) {
	if cfg.Data.Kind == "scenes" {
		w, err := source.World(cfg)
		if err != nil {
			return nil, err
		}
		return data.SceneCaptions(w, vocabScenes), nil
	}
	ds, err := source.Files(cfg, "train")
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range ds.Len() {
		for _, c := range ds.Captions(i) {
			out = append(out, data.CleanCaption(c, cfg.Data.MaxWords))
		}
	}
	return out, nil
}
