package source

import (
	"context"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/scenes"
)

// Scenes is the built-in procedural world (data.kind = "scenes", and regions of them).
type Scenes struct {
	// least number of objects of a scene
	MinObjects int `toml:"min_objects" max:"4"`
	// largest number of objects of a scene, at most 4
	MaxObjects int `toml:"max_objects" max:"4"`
	// samples that count as one epoch of the infinite train stream
	EpochSamples int `toml:"epoch_samples" max:"1000000000"`
	// scenes of the fixed validation split
	ValSamples int `toml:"val_samples" max:"20000"`
	// scenes of the fixed test split
	TestSamples int `toml:"test_samples" max:"20000"`
}

// Defaults implements section.Defaulter.
func (s *Scenes) Defaults() {
	*s = Scenes{MinObjects: 1, MaxObjects: 4, EpochSamples: 10000, ValSamples: 1000, TestSamples: 1000}
}

// Check implements section.Checked.
func (s *Scenes) Check(k *section.Checker) {
	if !section.Of[Data](k).Drawn() {
		return
	}
	const most = 4 // the largest number of objects the renderer places apart
	k.Require("data.scenes.min_objects", s.MinObjects >= 1 && s.MinObjects <= most, "must be between 1 and 4")
	k.Require("data.scenes.max_objects", s.MaxObjects >= 1 && s.MaxObjects <= most, "must be between 1 and 4")
	k.Require("data.scenes.max_objects", s.MaxObjects >= s.MinObjects, "must be at least data.scenes.min_objects")
	k.Positive("data.scenes.epoch_samples", "data.scenes.val_samples", "data.scenes.test_samples")
}

// vocabScenes is the number of scenes whose captions a vocabulary is learned from:
// they say everything that scenes can say.
const vocabScenes = 2000

// scenesKind is data.kind = "scenes": a procedural world. Its training split has no end.
var scenesKind = Kind{
	Splits: func(Setup) []string { return []string{"val", "test"} },
	Stream: func(_ context.Context, cfg Setup, o Options) (data.Stream, error) {
		w, err := World(cfg)
		if err != nil {
			return nil, err
		}
		return data.NewSceneStream(w, cfg.Data.Scenes.EpochSamples, o.train(cfg))
	},
	Split: func(_ context.Context, cfg Setup, split string, _ Options) (data.Dataset, error) {
		w, err := World(cfg)
		if err != nil {
			return nil, err
		}
		return data.NewSceneSet(w, split, cfg.ImageSize)
	},
	Captions: func(_ context.Context, cfg Setup, _ Options) ([]string, error) {
		w, err := World(cfg)
		if err != nil {
			return nil, err
		}
		return data.SceneCaptions(w, vocabScenes, cfg.Data.Clean), nil
	},
}

// World returns the procedural world that a configuration describes.
func World(cfg Setup) (*scenes.World, error) {
	s := cfg.Data.Scenes
	return scenes.New(scenes.Config{
		MinObjects:  s.MinObjects,
		MaxObjects:  s.MaxObjects,
		Size:        cfg.ImageSize,
		ValSamples:  s.ValSamples,
		TestSamples: s.TestSamples,
	}, cfg.Seed)
}

func (*Scenes) kind() Kind { return scenesKind }
