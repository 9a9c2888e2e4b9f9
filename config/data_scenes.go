package config

// Scenes is the built-in procedural world (data.kind = "scenes", and regions of them).
type Scenes struct {
	MinObjects   int `toml:"min_objects" max:"4"`            // least number of objects of a scene
	MaxObjects   int `toml:"max_objects" max:"4"`            // largest number of objects of a scene, at most 4
	EpochSamples int `toml:"epoch_samples" max:"1000000000"` // samples that count as one epoch of the infinite train stream
	ValSamples   int `toml:"val_samples" max:"20000"`        // scenes of the fixed validation split
	TestSamples  int `toml:"test_samples" max:"20000"`       // scenes of the fixed test split
}

func (s *Scenes) defaults() {
	*s = Scenes{MinObjects: 1, MaxObjects: 4, EpochSamples: 10000, ValSamples: 1000, TestSamples: 1000}
}

func (s *Scenes) check(k *checker, c *Config) {
	if !c.Data.Drawn() {
		return
	}
	const most = 4 // the largest number of objects the renderer places apart
	k.Require("data.scenes.min_objects", s.MinObjects >= 1 && s.MinObjects <= most, "must be between 1 and 4")
	k.Require("data.scenes.max_objects", s.MaxObjects >= 1 && s.MaxObjects <= most, "must be between 1 and 4")
	k.Require("data.scenes.max_objects", s.MaxObjects >= s.MinObjects, "must be at least data.scenes.min_objects")
	k.Positive("data.scenes.epoch_samples", "data.scenes.val_samples", "data.scenes.test_samples")
}
