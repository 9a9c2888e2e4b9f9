package source

import (
	"context"

	"github.com/geoalign/geoalign/config/section"

	"github.com/geoalign/geoalign/data"
)

// Captions names the ALBEF-style JSON lists of data.kind = "captions".
type Captions struct {
	// training lists
	TrainFiles []string `toml:"train_files"`
	// validation lists
	ValFiles []string `toml:"val_files"`
	// test lists
	TestFiles []string `toml:"test_files"`
}

// Check implements section.Checked.
func (f *Captions) Check(k *section.Checker) {
	splitFiles(k, "captions", section.Of[Data](k).Split.files(f.Split))
}

// Split returns the lists of a split: train, val or test.
func (f Captions) Split(name string) []string {
	return filesOf(name, f.TrainFiles, f.ValFiles, f.TestFiles)
}

// captionFiles are the lists of a split.
func captionFiles(cfg Setup, split string) []string {
	return cfg.Data.Split.Files(split, cfg.Data.Captions.Split)
}

// captionLists is data.kind = "captions": lists of images with captions, as JSON.
var captionLists = lists{
	load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
		files := captionFiles(cfg, split)
		if len(files) == 0 {
			return nil, section.Errors{{Path: "data.captions." + split + "_files", Msg: "must name at least one file",
				Hint: "or choose another split"}}
		}
		return opened(data.LoadCaptions(cfg.Data.Root, files, divided(cfg, split, options(cfg, o, "reading captions"))))
	},
	splits: func(cfg Setup) []string {
		var list []string
		for _, split := range Splits {
			if len(captionFiles(cfg, split)) > 0 {
				list = append(list, split)
			}
		}
		return list
	},
	inputs: func(cfg Setup, split string) (list []Input) {
		for _, name := range captionFiles(cfg, split) {
			list = append(list, Under(cfg, "data.captions."+split+"_files", name, false)...)
		}
		return append(list, root(cfg)) // of the images
	},
	mayLack: true,
}

func (*Captions) kind() Kind { return imageFiles(captionLists) }
