package source

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/neighbours"
)

// storedPairs is data.kind = "pairs": files of stored features, rows in step. Streams and galleries of them
// have a method Close.
var storedPairs = Kind{
	Splits: func(cfg config.Config) []string {
		if names, ok := indexSplits(cfg); ok {
			return names
		}
		list := []string{"train"}
		if cfg.Data.Pairs.ValSamples > 0 {
			list = append(list, "val")
		}
		if cfg.Data.Pairs.TestSamples > 0 {
			list = append(list, "test")
		}
		return list
	},
	MayLack: true,
	Inputs: func(cfg config.Config, _ string) []Input {
		p := cfg.Data.Pairs
		var list []Input
		for _, x := range []struct{ key, file string }{{"image", p.Image}, {"text", p.Text}, {"image_pool", p.ImagePool}, {"text_pool", p.TextPool}, {"index", p.Index}} {
			switch {
			case x.file == "":
			case x.key == "index":
				list = append(list, below(cfg, "data.pairs."+x.key, x.file, false)...)
			default:
				list = append(list, content(cfg, "data.pairs."+x.key, x.file, config.FeatureFolder(x.file))...)
			}
		}
		return list
	},
	Entries: func(_ context.Context, cfg config.Config, split string, _ Options) (any, error) {
		if split == "train" { // without neighbours
			return Pairs(cfg)
		}
		p, err := Pairs(cfg)
		if err != nil {
			return nil, err
		}
		return p.Set(split, 0)
	},
	Stream: func(ctx context.Context, cfg config.Config, o Options) (data.Stream, error) {
		p, err := Pairs(cfg)
		if err != nil {
			return nil, err
		}
		c := features.StreamConfig{PerCaption: o.PerCaption}
		if err := addNeighbours(ctx, &c, p, cfg, o); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		return p.Stream(c), nil
	},
	Galleries: func(_ context.Context, cfg config.Config, split string, _ Options) (data.Galleries, error) {
		p, err := Pairs(cfg)
		if err != nil {
			return nil, err
		}
		set, err := p.Set(split, cfg.Eval.MaxImages)
		if err != nil {
			return nil, err
		}
		return set, nil
	},
}

// indexSplits returns the splits that the table of the pairs names, and whether it does. Of a
// table that cannot be read who opens it says what is wrong.
func indexSplits(cfg config.Config) ([]string, bool) {
	if cfg.Data.Pairs.Index == "" {
		return nil, false
	}
	names, ok, err := features.IndexSplits(Below(cfg.Data.Root, cfg.Data.Pairs.Index))
	return names, ok && err == nil
}

// DrawsSplits says whether the splits of stored features are drawn: no table of their pairs names
// them.
func DrawsSplits(cfg config.Config) bool {
	_, named := indexSplits(cfg)
	return !named
}

// Pairs opens the stored features of a configuration. Close them after use.
func Pairs(cfg config.Config) (*features.Pairs, error) {
	p, err := features.Open(pairsConfig(cfg), cfg.Run.Seed)
	return p, rootHint(err, cfg.Data.Root)
}

// Convert makes the copies of features that must be converted before they are read, where there are
// none yet; of other data it does nothing. Without it they are made when the data is first opened, without a
// word. progress is told how much of a phase is done, and may be nil. It ends early with the error of ctx.
func Convert(ctx context.Context, cfg config.Config, progress func(phase string, done, of int)) error {
	if cfg.Data.Kind != "pairs" {
		return nil
	}
	if progress == nil {
		progress = func(string, int, int) {}
	}
	err := pairsConfig(cfg).Convert(ctx, func(path string, done, of int) { progress("converting "+filepath.Base(path), done, of) })
	return rootHint(err, cfg.Data.Root)
}

// pairsConfig is the part of a configuration that package features reads.
func pairsConfig(cfg config.Config) features.PairsConfig {
	d := cfg.Data
	given := func(path string) string {
		if path == "" {
			return ""
		}
		return Below(d.Root, path)
	}
	return features.PairsConfig{
		ImagePool:   given(d.Pairs.ImagePool),
		TextPool:    given(d.Pairs.TextPool),
		Index:       given(d.Pairs.Index),
		Image:       Below(d.Root, d.Pairs.Image),
		Text:        Below(d.Root, d.Pairs.Text),
		ImageTensor: d.Pairs.ImageTensor,
		TextTensor:  d.Pairs.TextTensor,
		Cache:       d.CacheDir,
		Center:      cfg.CentersFeatures(),
		Division: features.Division{
			ValSamples:  d.Pairs.ValSamples,
			TestSamples: d.Pairs.TestSamples,
			Hold:        features.Hold(d.Pairs.Hold),
			Seed:        d.Pairs.Seed,
			Paired:      d.Pairs.Paired,
		},
	}
}

// addNeighbours finds what the geometric term of alignment heads compares with.
func addNeighbours(ctx context.Context, c *features.StreamConfig, p *features.Pairs, cfg config.Config, o Options) error {
	g := cfg.Objective.Geometric
	if !cfg.Model.Stored() || !cfg.Objective.Geometric.On() {
		return nil
	}
	k := neighbours.Config{K: g.Neighbours, Near: g.Near(), Sampling: g.Sampling, Anchor: g.Anchor}
	how := neighbours.Options{Engine: o.Engine, Seed: cfg.Run.Seed, Cache: cfg.Data.CacheDir, Progress: o.Progress, Note: o.Warn}
	if g.Modalities != "text" {
		lists, err := neighbours.Images(ctx, p, k, how)
		if err != nil {
			return err
		}
		c.ImageNeighbours = lists
	}
	if g.Modalities != "image" {
		lists, err := neighbours.Texts(ctx, p, k, how)
		if err != nil {
			return err
		}
		c.TextNeighbours = lists
	}
	return nil
}
