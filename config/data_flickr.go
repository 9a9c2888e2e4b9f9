package config

// Flickr names the captions of data.kind = "flickr": lines of image#number, a tab and a caption, as in
// results_20130124.token of Flickr30k and Flickr8k.token.txt.
type Flickr struct {
	File      string `toml:"file"`       // the captions of all splits
	ImageRoot string `toml:"image_root"` // folder of the images, below data.root unless absolute; empty: data.root
	TrainList string `toml:"train_list"` // text file with the name of a training image on each line, such as Flickr_8k.trainImages.txt; empty: all images are training images
	ValList   string `toml:"val_list"`   // likewise of validation
	TestList  string `toml:"test_list"`  // likewise of test
}

func (f *Flickr) defaults() {}

func (f *Flickr) check(k *checker, c *Config) {
	if c.Data.Kind != "flickr" {
		return
	}
	k.Require("data.flickr.file", f.File != "", `must name the file of the captions for data.kind "flickr"`)
	k.Require("data.flickr.train_list", f.TrainList != "" || f.ValList == "" && f.TestList == "", "must name a file where another split has a list",
		"else images of that split would be trained on")
	if c.Train.EvalEverySteps > 0 && (c.Eval.Split == "val" || c.Eval.Split == "test") {
		k.Training("data.flickr."+c.Eval.Split+"_list", f.Split(c.Eval.Split) != "", "must name a file", "or set eval.split or train.eval_every_steps = 0")
	}
}

// Split returns the list of a split: train, val or test.
func (f Flickr) Split(name string) string { return filesOf(name, f.TrainList, f.ValList, f.TestList) }
