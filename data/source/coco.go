package source

import (
	"context"

	"github.com/geoalign/geoalign/config/section"

	"github.com/geoalign/geoalign/data"
)

// COCO names the annotations of data.kind = "coco": captions_*.json with the lists images and annotations.
type COCO struct {
	// training annotations
	TrainFile string `toml:"train_file"`
	// validation annotations
	ValFile string `toml:"val_file"`
	// test annotations
	TestFile string `toml:"test_file"`
	// folder of the training images, below data.root unless absolute; empty: data.root
	TrainImages string `toml:"train_images"`
	// folder of the validation images
	ValImages string `toml:"val_images"`
	// folder of the test images
	TestImages string `toml:"test_images"`
}

// Check implements section.Checked.
func (f *COCO) Check(k *section.Checker) {
	if section.Of[Data](k).Kind != "coco" {
		return
	}
	k.Training("data.coco.train_file", f.TrainFile != "", `must name the captions_*.json for data.kind "coco"`)
	if k.Number("train.eval_every_steps") > 0 && (evaluated(k) == "val" || evaluated(k) == "test") {
		file, _ := f.Split(evaluated(k))
		k.Training("data.coco."+evaluated(k)+"_file", file != "", "must name a file",
			"or set eval.split or train.eval_every_steps = 0")
	}
}

// Split returns the annotations of a split, train, val or test, and the folder of its images.
func (f COCO) Split(name string) (file, images string) {
	return filesOf(name, f.TrainFile, f.ValFile, f.TestFile), filesOf(name, f.TrainImages, f.ValImages, f.TestImages)
}

// coco is data.kind = "coco": captions_*.json with images and annotations.
var coco = lists{
	load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
		file, images := cfg.Data.COCO.Split(split)
		if file == "" {
			return nil, section.Errors{{Path: "data.coco." + split + "_file", Msg: "must name a file",
				Hint: "or choose another split"}}
		}
		return opened(data.LoadCOCO(Below(cfg.Data.Root, file), Below(cfg.Data.Root, images),
			options(cfg, o, "reading captions")))
	},
	splits: func(cfg Setup) (list []string) {
		for _, split := range Splits {
			if file, _ := cfg.Data.COCO.Split(split); file != "" {
				list = append(list, split)
			}
		}
		return list
	},
	inputs: func(cfg Setup, split string) []Input {
		file, images := cfg.Data.COCO.Split(split)
		if file == "" {
			return nil
		}
		return append(Under(cfg, "data.coco."+split+"_file", file, false),
			Under(cfg, "data.coco."+split+"_images", images, true)...)
	},
	mayLack: true,
}

func (*COCO) kind() Kind { return imageFiles(coco) }
