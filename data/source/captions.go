package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// captionFiles are the lists of a split.
func captionFiles(cfg config.Config, split string) []string {
	return cfg.Data.Split.Files(split, cfg.Data.Captions.Split)
}

// captionLists is data.kind = "captions": lists of images with captions, as JSON.
var captionLists = lists{
	load: func(_ context.Context, cfg config.Config, split string, o Options) (data.Cached, error) {
		files := captionFiles(cfg, split)
		if len(files) == 0 {
			return nil, config.Errors{{Path: "data.captions." + split + "_files", Msg: "must name at least one file",
				Hint: "or choose another split"}}
		}
		return opened(data.LoadCaptions(cfg.Data.Root, files, divided(cfg, split, options(cfg, o, "reading captions"))))
	},
	splits: func(cfg config.Config) []string {
		var list []string
		for _, split := range Splits {
			if len(captionFiles(cfg, split)) > 0 {
				list = append(list, split)
			}
		}
		return list
	},
	inputs: func(cfg config.Config, split string) (list []Input) {
		for _, name := range captionFiles(cfg, split) {
			list = append(list, below(cfg, "data.captions."+split+"_files", name, false)...)
		}
		return append(list, root(cfg)) // of the images
	},
	mayLack: true,
}
