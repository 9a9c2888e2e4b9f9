// Package source opens the data that a configuration describes.
package source

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

// World returns the procedural world that a configuration describes.
func World(cfg config.Config) (*scenes.World, error) {
	s := cfg.Data.Scenes
	return scenes.New(scenes.Config{
		MinObjects:  s.MinObjects,
		MaxObjects:  s.MaxObjects,
		Size:        cfg.Model.Image.Size,
		ValSamples:  s.ValSamples,
		TestSamples: s.TestSamples,
	}, cfg.Run.Seed)
}

// Files returns a split (train, val or test) of a data kind that reads files.
func Files(cfg config.Config, split string) (*data.Files, error) {
	d := cfg.Data
	opt := data.Options{MaxPixels: d.MaxPixels}
	switch d.Kind {
	case "captions":
		files := map[string][]string{"train": d.TrainFiles, "val": d.ValFiles, "test": d.TestFiles}[split]
		if len(files) == 0 {
			return nil, config.Errors{{Path: "data." + split + "_files", Msg: "must name at least one file",
				Hint: "or choose another split"}}
		}
		ds, err := data.LoadCaptions(d.Root, files, opt)
		return ds, rootHint(err, d.Root)
	case "karpathy":
		ds, err := data.LoadKarpathy(Below(d.Root, d.File), Below(d.Root, d.ImageRoot), split, opt)
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

// Split returns a split of the data as a finite data set. The train split of
// the scenes is endless and has none.
func Split(cfg config.Config, split string) (data.Dataset, error) {
	if cfg.Data.Kind != "scenes" {
		return Files(cfg, split)
	}
	w, err := World(cfg)
	if err != nil {
		return nil, err
	}
	return data.NewSceneSet(w, split, cfg.Model.Image.Size)
}

// Stream returns the endless stream of augmented training samples. With pairs
// every (image, caption) pair is a sample, as in retrieval fine-tuning; else every
// image is, with one of its captions drawn at each access.
func Stream(cfg config.Config, pairs bool) (data.Stream, error) {
	s, _, err := CachedStream(cfg, pairs)
	return s, err
}

// CachedStream is Stream and also returns the cache of the images, nil
// for none.
func CachedStream(cfg config.Config, pairs bool) (data.Stream, *data.Cache, error) {
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
		w, err := World(cfg)
		if err != nil {
			return nil, nil, err
		}
		s, err := data.NewSceneStream(w, d.Scenes.EpochSamples, train)
		return s, nil, err
	}
	ds, err := Files(cfg, "train")
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

// Below joins a path to the folder it starts from, unless it is absolute.
func Below(root, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}
