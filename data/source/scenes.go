package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/scenes"
)

// vocabScenes is the number of scenes whose captions a vocabulary is learned from:
// they say everything that scenes can say.
const vocabScenes = 2000

// scenesKind is data.kind = "scenes": a procedural world. Its training split has no end.
var scenesKind = Kind{
	Splits: func(config.Config) []string { return []string{"val", "test"} },
	Stream: func(_ context.Context, cfg config.Config, o Options) (data.Stream, error) {
		w, err := World(cfg)
		if err != nil {
			return nil, err
		}
		return data.NewSceneStream(w, cfg.Data.Scenes.EpochSamples, o.train(cfg))
	},
	Split: func(_ context.Context, cfg config.Config, split string, _ Options) (data.Dataset, error) {
		w, err := World(cfg)
		if err != nil {
			return nil, err
		}
		return data.NewSceneSet(w, split, cfg.Model.Image.Size)
	},
	Captions: func(_ context.Context, cfg config.Config, _ Options) ([]string, error) {
		w, err := World(cfg)
		if err != nil {
			return nil, err
		}
		return data.SceneCaptions(w, vocabScenes, cfg.Data.Clean), nil
	},
}

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
