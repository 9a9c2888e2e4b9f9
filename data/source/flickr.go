package source

import (
	"context"

	"github.com/geoalign/geoalign/config/section"

	"github.com/geoalign/geoalign/data"
)

// Flickr names the captions of data.kind = "flickr": lines of image#number, a tab and a caption, as in
// results_20130124.token of Flickr30k and Flickr8k.token.txt.
type Flickr struct {
	// the captions of all splits
	File string `toml:"file"`
	// folder of the images, below data.root unless absolute; empty: data.root
	ImageRoot string `toml:"image_root"`
	// text file with the name of a training image on each line, such as Flickr_8k.trainImages.txt; empty: all images
	// are training images
	TrainList string `toml:"train_list"`
	// likewise of validation
	ValList string `toml:"val_list"`
	// likewise of test
	TestList string `toml:"test_list"`
}

// Check implements section.Checked.
func (f *Flickr) Check(k *section.Checker) {
	if section.Of[Data](k).Kind != "flickr" {
		return
	}
	k.Require("data.flickr.file", f.File != "", `must name the file of the captions for data.kind "flickr"`)
	k.Require("data.flickr.train_list", f.TrainList != "" || f.ValList == "" && f.TestList == "",
		"must name a file where another split has a list", "else images of that split would be trained on")
	if k.Number("train.eval_every_steps") > 0 && (evaluated(k) == "val" || evaluated(k) == "test") {
		k.Training("data.flickr."+evaluated(k)+"_list", f.Split(evaluated(k)) != "", "must name a file",
			"or set eval.split or train.eval_every_steps = 0")
	}
}

// Split returns the list of a split: train, val or test.
func (f Flickr) Split(name string) string { return filesOf(name, f.TrainList, f.ValList, f.TestList) }

// flickr is data.kind = "flickr": lines of image#number and a caption, with a list of images for each split.
var flickr = lists{
	load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
		f := cfg.Data.Flickr
		list := f.Split(split)
		switch {
		case list != "":
			list = Below(cfg.Data.Root, list)
		case split != "train":
			return nil, section.Errors{{Path: "data.flickr." + split + "_list", Msg: "must name a file",
				Hint: "or choose another split"}}
		}
		return opened(data.LoadFlickr(Below(cfg.Data.Root, f.File), Below(cfg.Data.Root, f.ImageRoot), list,
			options(cfg, o, "reading captions")))
	},
	splits: func(cfg Setup) (list []string) {
		for _, split := range Splits {
			if split == "train" || cfg.Data.Flickr.Split(split) != "" {
				list = append(list, split)
			}
		}
		return list
	},
	inputs: func(cfg Setup, split string) []Input {
		f := cfg.Data.Flickr
		list := append(Under(cfg, "data.flickr.file", f.File, false),
			Under(cfg, "data.flickr.image_root", f.ImageRoot, true)...)
		if name := f.Split(split); name != "" {
			list = append(list, Under(cfg, "data.flickr."+split+"_list", name, false)...)
		}
		return list
	},
	mayLack: true,
}

func (*Flickr) kind() Kind { return imageFiles(flickr) }
