package config

// COCO names the annotations of data.kind = "coco": captions_*.json with the lists images and annotations.
type COCO struct {
	TrainFile   string `toml:"train_file"`   // training annotations
	ValFile     string `toml:"val_file"`     // validation annotations
	TestFile    string `toml:"test_file"`    // test annotations
	TrainImages string `toml:"train_images"` // folder of the training images, below data.root unless absolute; empty: data.root
	ValImages   string `toml:"val_images"`   // folder of the validation images
	TestImages  string `toml:"test_images"`  // folder of the test images
}

func (f *COCO) defaults() {}

func (f *COCO) check(k *checker, c *Config) {
	if c.Data.Kind != "coco" {
		return
	}
	k.Training("data.coco.train_file", f.TrainFile != "", `must name the captions_*.json for data.kind "coco"`)
	if c.Train.EvalEverySteps > 0 && (c.Eval.Split == "val" || c.Eval.Split == "test") {
		file, _ := f.Split(c.Eval.Split)
		k.Training("data.coco."+c.Eval.Split+"_file", file != "", "must name a file", "or set eval.split or train.eval_every_steps = 0")
	}
}

// Split returns the annotations of a split, train, val or test, and the folder of its images.
func (f COCO) Split(name string) (file, images string) {
	return filesOf(name, f.TrainFile, f.ValFile, f.TestFile), filesOf(name, f.TrainImages, f.ValImages, f.TestImages)
}
