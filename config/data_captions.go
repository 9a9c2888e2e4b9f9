package config

import "slices"

// Captions names the ALBEF-style JSON lists of data.kind = "captions".
type Captions struct {
	TrainFiles []string `toml:"train_files"` // training lists
	ValFiles   []string `toml:"val_files"`   // validation lists
	TestFiles  []string `toml:"test_files"`  // test lists
}

func (f *Captions) defaults() {}

func (f *Captions) check(k *checker, c *Config) {
	for _, s := range []struct {
		path  string
		files []string
	}{{"data.captions.train_files", f.TrainFiles}, {"data.captions.val_files", f.ValFiles}, {"data.captions.test_files", f.TestFiles}} {
		k.require(s.path, !slices.Contains(s.files, ""), "must not hold an empty file name")
	}
	if c.Data.Kind != "captions" {
		return
	}
	k.training("data.captions.train_files", len(f.TrainFiles) > 0, `must name at least one file for data.kind "captions"`)
	if c.Train.EvalEverySteps <= 0 || c.Eval.Split != "val" && c.Eval.Split != "test" {
		return
	}
	k.training("data.captions."+c.Eval.Split+"_files", len(f.Split(c.Eval.Split)) > 0, "must name at least one file",
		"or set eval.split or train.eval_every_steps = 0")
}

// Split returns the lists of a split: train, val or test.
func (f Captions) Split(name string) []string {
	switch name {
	case "train":
		return f.TrainFiles
	case "val":
		return f.ValFiles
	case "test":
		return f.TestFiles
	}
	return nil
}
