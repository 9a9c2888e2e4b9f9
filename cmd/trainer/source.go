package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

// openWorld returns the procedural world that a configuration describes.
func openWorld(cfg config.Config) (*scenes.World, error) {
	s := cfg.Data.Scenes
	return scenes.New(scenes.Config{
		MinObjects:  s.MinObjects,
		MaxObjects:  s.MaxObjects,
		Size:        cfg.Model.Image.Size,
		ValSamples:  s.ValSamples,
		TestSamples: s.TestSamples,
	}, cfg.Run.Seed)
}

// openFiles returns a split (train, val or test) of a data kind that reads files.
func openFiles(cfg config.Config, split string) (*data.Files, error) {
	d := cfg.Data
	opt := data.Options{MaxPixels: d.MaxPixels}
	switch d.Kind {
	case "captions":
		files := d.Captions.Split(split)
		if len(files) == 0 {
			return nil, config.Errors{{Path: "data.captions." + split + "_files", Msg: "must name at least one file",
				Hint: "or choose another split"}}
		}
		ds, err := data.LoadCaptions(d.Root, files, opt)
		return ds, rootHint(err, d.Root)
	case "karpathy":
		ds, err := data.LoadKarpathy(below(d.Root, d.Karpathy.File), below(d.Root, d.Karpathy.ImageRoot), split, opt)
		return ds, rootHint(err, d.Root)
	case "folder":
		ds, err := data.LoadFolder(d.Root, split, opt)
		return ds, rootHint(err, d.Root)
	default:
		return nil, fmt.Errorf("data.kind %q reads no files", d.Kind)
	}
}

// rootHint says where relative paths start from when a file is not there.
func rootHint(err error, root string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: relative paths start from data.root (%q): set it with --set data.root=FOLDER", err, root)
	}
	return err
}

// openSplit returns a split of the data as a finite data set. The train split of
// the scenes is endless and has none.
func openSplit(cfg config.Config, split string) (data.Dataset, error) {
	if cfg.Data.Kind != "scenes" {
		return openFiles(cfg, split)
	}
	w, err := openWorld(cfg)
	if err != nil {
		return nil, err
	}
	return data.NewSceneSet(w, split, cfg.Model.Image.Size)
}

// openStream returns the endless stream of augmented training samples. With pairs
// every (image, caption) pair is a sample, as in retrieval fine-tuning; else every
// image is, with one of its captions drawn at each access.
func openStream(cfg config.Config, pairs bool) (data.Stream, error) {
	s, _, err := openStreamCached(cfg, pairs)
	return s, err
}

// openStreamCached is openStream and also returns the cache of the images, nil
// for none.
func openStreamCached(cfg config.Config, pairs bool) (data.Stream, *data.Cache, error) {
	d := cfg.Data
	train := data.TrainConfig{
		Seed:     cfg.Run.Seed,
		MaxWords: d.MaxWords,
		Pairs:    pairs,
		Transform: transform.Train{
			Size:     cfg.Model.Image.Size,
			ScaleMin: d.CropScaleMin,
			Flip:     d.Flip,
			Ops:      d.RandAugmentOps,
			Level:    d.RandAugmentLvl,
			Jitter:   d.ColorJitter,
			Gray:     d.Grayscale,
			Blur:     d.Blur,
		},
	}
	if d.Kind == "scenes" {
		w, err := openWorld(cfg)
		if err != nil {
			return nil, nil, err
		}
		s, err := data.NewSceneStream(w, d.Scenes.EpochSamples, train)
		return s, nil, err
	}
	ds, err := openFiles(cfg, "train")
	if err != nil {
		return nil, nil, err
	}
	cache, err := openCache(cfg)
	if err != nil {
		return nil, nil, err
	}
	ds.UseCache(cache)
	s, err := data.NewTrain(ds, train)
	return s, cache, err
}

// openCache returns the cache of decoded training images, nil for none.
func openCache(cfg config.Config) (*data.Cache, error) {
	d := cfg.Data
	return data.NewCache(data.CacheConfig{
		Kind:     d.Cache,
		Dir:      d.CacheDir,
		MaxBytes: int64(min(d.CacheMaxGB, 1e9) * 1e9),
		Size:     d.CacheSize,
		Warn:     func(s string) { fmt.Fprintln(os.Stderr, s) },
	})
}

// below joins a path to the folder it starts from, unless it is absolute.
func below(root, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}
