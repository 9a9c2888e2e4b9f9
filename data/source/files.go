package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// lists is a kind of data that is image files with captions.
type lists struct {
	load    func(cfg config.Config, split string) (*data.Files, error)
	splits  func(cfg config.Config) []string
	inputs  func(cfg config.Config, split string) []Input
	mayLack bool
}

// imageFiles is the Kind of image files.
func imageFiles(l lists) Kind {
	load := func(cfg config.Config, split string) (*data.Files, error) {
		ds, err := l.load(cfg, split)
		return ds, rootHint(err, cfg.Data.Root)
	}
	return Kind{
		Splits:  l.splits,
		MayLack: l.mayLack,
		Inputs:  l.inputs,
		Stream: func(_ context.Context, cfg config.Config, o Options) (data.Stream, error) {
			ds, err := load(cfg, "train")
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
		Split: func(cfg config.Config, split string) (data.Dataset, error) {
			ds, err := load(cfg, split)
			if err != nil {
				return nil, err // and no *data.Files of nothing
			}
			return ds, nil
		},
		Captions: func(cfg config.Config) ([]string, error) {
			ds, err := load(cfg, "train")
			if err != nil {
				return nil, err
			}
			var out []string
			for i := range ds.Len() {
				for _, c := range ds.Captions(i) {
					out = append(out, data.Clean(cfg.Data.Clean, c, cfg.Data.MaxWords))
				}
			}
			return out, nil
		},
	}
}

// options of the sources that read files.
func options(cfg config.Config) data.Options {
	return data.Options{MaxPixels: cfg.Data.MaxPixels, Clean: cfg.Data.Clean}
}

// rootHint says where relative paths start from when a file is not there.
func rootHint(err error, root string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: relative paths start from data.root (%q): set it with --set data.root=FOLDER", err, root)
	}
	return err
}

// newCache returns the cache of decoded training images, nil for none.
func newCache(cfg config.Config, warn func(string)) (*data.Cache, error) {
	d := cfg.Data
	return data.NewCache(data.CacheConfig{
		Kind:     d.Cache,
		Dir:      d.CacheDir,
		MaxBytes: int64(min(d.CacheMaxGB, 1e9) * 1e9),
		Size:     d.CacheSize,
		Warn:     warn,
	})
}
