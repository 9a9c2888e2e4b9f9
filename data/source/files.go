package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/geoalign/geoalign/data"
)

// lists is a kind of data that is images with captions in files.
type lists struct {
	load    func(ctx context.Context, cfg Setup, split string, o Options) (data.Cached, error)
	splits  func(cfg Setup) []string
	inputs  func(cfg Setup, split string) []Input
	mayLack bool
}

// opened is what a loader returned, and nothing with an error.
func opened[D data.Cached](ds D, err error) (data.Cached, error) {
	if err != nil {
		return nil, err
	}
	return ds, nil
}

// imageFiles is the Kind of images with captions in files.
func imageFiles(l lists) Kind {
	load := func(ctx context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
		ds, err := l.load(ctx, cfg, split, o)
		return ds, RootHint(err, cfg.Data.Root)
	}
	return Kind{
		Splits:  l.splits,
		MayLack: l.mayLack,
		Inputs:  l.inputs,
		Stream: func(ctx context.Context, cfg Setup, o Options) (data.Stream, error) {
			ds, err := load(ctx, cfg, "train", o)
			if err != nil {
				return nil, err
			}
			cache, err := newCache(cfg, o.Warn)
			if err != nil {
				return nil, err
			}
			ds.UseCache(cache)
			return data.NewTrain(ds, o.train(cfg))
		},
		Split: func(ctx context.Context, cfg Setup, split string, o Options) (data.Dataset, error) {
			return load(ctx, cfg, split, o)
		},
		Captions: func(ctx context.Context, cfg Setup, o Options) ([]string, error) {
			ds, err := load(ctx, cfg, "train", o)
			if err != nil {
				return nil, err
			}
			if c, ok := ds.(io.Closer); ok {
				defer c.Close()
			}
			tell := o.opening(vocabularyPhase)
			var out []string
			for i := range ds.Len() {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if tell != nil {
					tell(i, ds.Len())
				}
				for _, c := range append(ds.Captions(i), data.OtherTexts(ds, i)...) {
					out = append(out, data.Clean(cfg.Data.Clean, c, cfg.Data.MaxWords))
				}
			}
			return out, nil
		},
	}
}

// vocabularyPhase is the phase in which Captions reads captions.
const vocabularyPhase = "reading captions for a vocabulary"

// options of the sources that read files, which o.Progress is told of as a phase.
func options(cfg Setup, o Options, phase string) data.Options {
	return data.Options{MaxPixels: cfg.Data.MaxPixels, Clean: cfg.Data.Clean, Progress: o.opening(phase)}
}

// divided is options with the images of a split, where the training files are divided.
func divided(cfg Setup, split string, o data.Options) data.Options {
	d := cfg.Data.Split
	if d.Divides() && (split == "train" || d.Percent(split) > 0) {
		o.Keep = data.Divide(split, d.Val, d.Test)
	}
	return o
}

// RootHint says where relative paths start from when a file is not there.
func RootHint(err error, root string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: relative paths start from data.root (%q): set it with --set data.root=FOLDER", err, root)
	}
	return err
}

// newCache returns the cache of decoded training images, nil for none.
func newCache(cfg Setup, warn func(string)) (*data.Cache, error) {
	d := cfg.Data
	return data.NewCache(data.CacheConfig{
		Kind:     d.Cache,
		Dir:      d.CacheDir,
		MaxBytes: int64(min(d.CacheMaxGB, 1e9) * 1e9),
		Size:     d.CacheSize,
		Warn:     warn,
	})
}
