// Package source opens the data that a configuration describes: the training stream, the splits for evaluation and the
// captions that a vocabulary is learned from. Every data.kind is one file, with its section, its Kind and of a list the
// map of its fields, and one field of Data. Table, Parquet and Shards of package data, which read rows where they lie
// on disk and share its caches and clocks, are there.
//
//	stream, err := source.Stream(ctx, cfg, source.Options{Tokenizer: tok})
//	set, err := source.Eval(ctx, cfg, "val", source.Options{})
package source

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/names"
)

// Kind opens data of one kind. A function that a kind does not have is nil.
type Kind struct {
	// Splits lists the finite splits that the configuration has, train first.
	Splits func(cfg Setup) []string
	// MayLack says that a configuration need not have a val or test split: a run is
	// then not evaluated. Of other kinds it is an error.
	MayLack bool
	// Stream opens the endless stream of training samples.
	Stream func(ctx context.Context, cfg Setup, o Options) (data.Stream, error)
	// Split opens a finite split of images with captions.
	Split func(ctx context.Context, cfg Setup, split string, o Options) (data.Dataset, error)
	// Examples opens a split of samples of a downstream task.
	Examples func(ctx context.Context, cfg Setup, split string, o Options) (data.Examples, error)
	// Galleries opens a finite split for retrieval; nil: that of Split.
	Galleries func(ctx context.Context, cfg Setup, split string, o Options) (data.Galleries, error)
	// Inputs lists the files and folders that a split is read from, as the configuration
	// names them.
	Inputs func(cfg Setup, split string) []Input
	// Entries opens a split for its data.Entries alone; nil: Examples, Stream or Split do.
	Entries func(ctx context.Context, cfg Setup, split string, o Options) (any, error)
	// Captions returns what a vocabulary is learned from, cleaned.
	Captions func(ctx context.Context, cfg Setup, o Options) ([]string, error)
}

// Options say how a training stream is made, and who is told how far the opening of any data is.
type Options struct {
	Tokenizer data.Tokenizer // nil: no columns of text
	// PerCaption makes every (image, caption) pair a sample, as in retrieval
	// fine-tuning; else every image is one, with one of its captions drawn at each
	// access.
	PerCaption bool
	Warn       func(string) // told what a cache cannot do and what rows were left out; nil: nobody is
	// Of what takes long when data is opened: lists and tables, an index of shards, neighbours among stored features.
	Engine   *compute.Engine                  // nil: one is started
	Progress func(phase string, done, of int) // nil: nobody is told
}

// Splits are the names of all splits.
var Splits = []string{"train", "val", "test"}

// Stream opens the training stream of a configuration. It ends early with the error of ctx.
func Stream(ctx context.Context, cfg Setup, o Options) (data.Stream, error) {
	k, err := kindOf(cfg)
	if err != nil {
		return nil, err
	}
	s, err := k.Stream(ctx, cfg, o)
	if err == nil && cfg.Mixed {
		s, err = alternating(ctx, s, cfg, o)
	}
	if err != nil || !cfg.ByIdentity {
		return s, err
	}
	return s, o.checkIdentities(cfg, s)
}

// Split opens a finite split of images with captions. It may end early with the error of ctx.
func Split(ctx context.Context, cfg Setup, split string, o Options) (data.Dataset, error) {
	k, err := kindOf(cfg)
	if err != nil {
		return nil, err
	}
	if k.Split == nil {
		return nil, fmt.Errorf("source: data.kind %q has no images and captions: use another kind here", cfg.Data.Kind)
	}
	return k.Split(ctx, cfg, split, o)
}

// Eval opens a split of images with captions for evaluation.
func Eval(ctx context.Context, cfg Setup, split string, o Options) (*data.Eval, error) {
	ds, err := Split(ctx, cfg, split, o)
	if err != nil {
		return nil, err
	}
	set, err := data.NewEval(ds, data.EvalConfig{ImageSize: cfg.ImageSize, Input: cfg.Input,
		MaxWords: cfg.Data.MaxWords, Clean: cfg.Data.Clean, MaxImages: cfg.MaxImages})
	if err != nil {
		return nil, err
	}
	if err := CheckFolds(cfg, set.NumImages()); err != nil {
		return nil, err
	}
	return set, nil
}

// Galleries opens a split of any kind for retrieval.
func Galleries(ctx context.Context, cfg Setup, split string, o Options) (data.Galleries, error) {
	k, err := kindOf(cfg)
	if err != nil {
		return nil, err
	}
	if k.Galleries == nil {
		set, err := Eval(ctx, cfg, split, o)
		if err != nil {
			return nil, err
		}
		return set, nil
	}
	set, err := k.Galleries(ctx, cfg, split, o)
	if err != nil {
		return nil, err
	}
	if err := CheckFolds(cfg, set.Images().Len()); err != nil {
		return nil, err
	}
	return set, nil
}

// CheckFolds says whether eval.folds divides a gallery of images.
func CheckFolds(cfg Setup, images int) error {
	if n := cfg.Folds; n > 1 && images%n != 0 {
		return section.Errors{{Path: "eval.folds", Value: n, Msg: fmt.Sprintf("must divide the %d images of the split",
			images),
			Hint: "choose a divisor, or the size of the gallery with eval.max_images"}}
	}
	return nil
}

// Texts returns the cleaned captions that a vocabulary is learned from.
func Texts(ctx context.Context, cfg Setup, o Options) ([]string, error) {
	k, err := kindOf(cfg)
	if err != nil {
		return nil, err
	}
	if k.Captions == nil {
		return nil, fmt.Errorf("source: data.kind %q has no captions to learn a vocabulary from", cfg.Data.Kind)
	}
	list, err := k.Captions(ctx, cfg, o)
	if err != nil || !cfg.Mixed {
		return list, err
	}
	more, err := kinds()["sentences"].Captions(ctx, cfg, o)
	return append(list, more...), err
}

// Finite lists the finite splits that a configuration has, train first.
func Finite(cfg Setup) ([]string, error) {
	k, err := kindOf(cfg)
	if err != nil {
		return nil, err
	}
	return k.Splits(cfg), nil
}

// CheckSplit says which splits there are where data has none of that name. A split that
// only lacks its files is found out by opening it.
func CheckSplit(cfg Setup, split string) error {
	list, err := Finite(cfg)
	switch {
	case err != nil:
		return err
	case slices.Contains(list, split), slices.Contains(Splits, split) && kinds()[cfg.Data.Kind].MayLack &&
		!cfg.Data.Drawn():
		return nil
	}
	why := ""
	if slices.Contains(Splits, split) && cfg.Data.Drawn() {
		why = ", as its train split has no end"
	}
	return fmt.Errorf("there is no split %q to read: data of kind %q has %s%s", split, cfg.Data.Kind,
		strings.Join(list, ", "), why)
}

// Unnamed says that a configuration leaves a split out, which its kind allows.
func Unnamed(cfg Setup, split string) bool {
	k, err := kindOf(cfg)
	return err == nil && k.MayLack && !slices.Contains(k.Splits(cfg), split)
}

// train is what all kinds with images do with them.
func (o Options) train(cfg Setup) data.TrainConfig {
	d := cfg.Data
	t := data.TrainConfig{
		Seed:     cfg.Seed,
		MaxWords: d.MaxWords,
		Clean:    d.Clean,
		Pairs:    o.PerCaption,
		Transform: transform.Train{
			Input:    cfg.Input,
			Size:     cfg.ImageSize,
			ScaleMin: d.CropScaleMin,
			Flip:     d.Flip,
			Ops:      d.RandAugmentOps,
			Level:    d.RandAugmentLvl,
			Jitter:   d.ColorJitter,
			Gray:     d.Grayscale,
			Blur:     d.Blur,
			Erase:    d.Erase,
		},
	}
	if r := cfg.Data.Crops; cfg.SmallCrops > 0 {
		t.Crops = data.Crops{Count: r.Count, Size: r.Size, ScaleMin: r.ScaleMin, ScaleMax: r.ScaleMax}
	}
	if cfg.ByIdentity {
		id := d.Identities
		t.Identities = data.IdentityConfig{Identities: cfg.Data.Identities.Of(cfg.BatchSize), Images: id.Images,
			LeaveOut: id.Short == "leave_out"}
	}
	if o.Tokenizer != nil {
		t.Text = &data.Texts{Tokenizer: o.Tokenizer, Tokens: d.Tokens}
	}
	return t
}

// Below joins a path of the configuration to the folder it starts from, data.root,
// unless it is absolute.
func Below(root, path string) string { return names.Under(root, path) }
