package source

import (
	"context"
	"fmt"
	"os"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/regions"
	"github.com/geoalign/geoalign/data/scenes"
)

// regionSets is data.kind = "regions": features of the regions of images, of files or of the built-in scenes. Streams
// and splits of files have a method Close.
var regionSets = Kind{
	Splits: func(cfg config.Config) (list []string) {
		if cfg.Data.Drawn() {
			return scenesKind.Splits(cfg)
		}
		for _, split := range Splits {
			if cfg.Data.Regions.Split(split) != "" {
				list = append(list, split)
			}
		}
		return list
	},
	MayLack: true,
	Inputs: func(cfg config.Config, split string) (list []Input) {
		r := cfg.Data.Regions
		if cfg.Data.Drawn() || r.Split(split) == "" {
			return nil
		}
		for _, x := range []struct {
			key, file string
			folder    bool
			add       func(cfg config.Config, key, value string, folder bool) []Input
		}{{"features", r.Features, false, content}, {"boxes", r.Boxes, false, content}, {"captions", r.Captions, false, below}, {"mapping", r.Mapping, false, below}, {"pictures", r.Pictures, true, below}} {
			if x.file != "" {
				list = append(list, x.add(cfg, "data.regions."+x.key, r.File(x.file, split), x.folder)...)
			}
		}
		return list
	},
	Stream: func(_ context.Context, cfg config.Config, o Options) (data.Stream, error) {
		if cfg.Data.Drawn() {
			s, err := sceneRegions(cfg)
			if err != nil {
				return nil, err
			}
			return s.Stream(cfg.Data.Scenes.EpochSamples, o.train(cfg))
		}
		set, err := openRegions(cfg, "train", o)
		if err != nil {
			return nil, err
		}
		return data.NewTrain(set, o.train(cfg))
	},
	Split: func(_ context.Context, cfg config.Config, split string, o Options) (data.Dataset, error) {
		if cfg.Data.Drawn() {
			s, err := sceneRegions(cfg)
			if err != nil {
				return nil, err
			}
			return s.Split(split, cfg.Model.Image.Size)
		}
		set, err := openRegions(cfg, split, o)
		if err != nil {
			return nil, err
		}
		return set, nil
	},
	Captions: func(ctx context.Context, cfg config.Config, o Options) ([]string, error) {
		if cfg.Data.Drawn() {
			return scenesKind.Captions(ctx, cfg, o)
		}
		set, err := openRegions(cfg, "train", o)
		if err != nil {
			return nil, err
		}
		defer set.Close()
		var out []string
		for i := range set.Len() {
			for _, c := range set.Captions(i) {
				out = append(out, data.Clean(cfg.Data.Clean, c, cfg.Data.MaxWords))
			}
		}
		return out, nil
	},
}

// sceneRegions opens the regions of the built-in scenes.
func sceneRegions(cfg config.Config) (*regions.Scenes, error) {
	w, err := World(cfg)
	if err != nil {
		return nil, err
	}
	r := cfg.Data.Regions
	return regions.NewScenes(w, regions.ScenesConfig{Width: r.Width, Noise: r.Noise, Most: r.Most, Seed: cfg.Run.Seed}), nil
}

// openRegions opens a split of files.
func openRegions(cfg config.Config, split string, o Options) (*regions.Set, error) {
	r := cfg.Data.Regions
	if r.Split(split) == "" {
		return nil, config.Errors{{Path: "data.regions." + split, Value: "", Msg: "must name the split in the names of its files", Hint: "or choose another split"}}
	}
	file := func(name string) string {
		if name == "" {
			return ""
		}
		return Below(cfg.Data.Root, r.File(name, split))
	}
	c := regions.Config{
		Features: file(r.Features), Tensor: r.Tensor, Boxes: file(r.Boxes), Captions: file(r.Captions), Words: r.CaptionForm == config.CaptionWords,
		IDs: file(r.IDs), Mapping: file(r.Mapping), Pictures: file(r.Pictures), Repeated: r.Repeated, Most: r.Most, Options: options(cfg, o, "reading captions"),
	}
	if split == "val" {
		c.MaxCaptions = r.ValCaptions
	}
	if c.Most == 0 {
		s, err := SizeOfRegions(cfg)
		if err != nil {
			return nil, rootHint(err, cfg.Data.Root)
		}
		c.Most = s.Most
	}
	set, err := regions.Load(c)
	return set, rootHint(err, cfg.Data.Root)
}

// RegionSizes are those of the regions of a configuration.
type RegionSizes struct {
	Most  int    // regions of an image: data.regions.most, or where it is 0 the most that an image of any split has
	Width int    // features of a region, 0 where no file is there
	Of    string // where these come from, a file or a key
}

// SizeOfRegions reads the sizes of regions from the splits whose files are there, which must have one width.
func SizeOfRegions(cfg config.Config) (s RegionSizes, err error) {
	r := cfg.Data.Regions
	s.Most = r.Most
	if cfg.Data.Drawn() {
		if s.Most == 0 {
			s.Most = scenes.MaxObjects
		}
		s.Width, s.Of = r.Width, "data.regions.width"
		return s, nil
	}
	seen := map[string]bool{}
	for _, split := range Splits {
		path := Below(cfg.Data.Root, r.File(r.Features, split))
		if _, err := os.Stat(path); err != nil || r.Split(split) == "" || seen[path] {
			continue
		}
		seen[path] = true
		f, err := regions.OpenFeatures(path, r.Tensor, "")
		if err != nil {
			return s, err
		}
		if s.Of == "" {
			s.Of, s.Width = path, f.Width()
		}
		if f.Width() != s.Width {
			return s, fmt.Errorf("regions: %s has %d features for a region and %s %d: all splits must have one width", s.Of, s.Width, path, f.Width())
		}
		if r.Most == 0 {
			s.Most = max(s.Most, f.Most())
		}
		if err := f.Close(); err != nil {
			return s, err
		}
	}
	return s, nil
}
