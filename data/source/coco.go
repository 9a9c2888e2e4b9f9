package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// coco is data.kind = "coco": captions_*.json with images and annotations.
var coco = lists{
	load: func(_ context.Context, cfg config.Config, split string, o Options) (data.Cached, error) {
		file, images := cfg.Data.COCO.Split(split)
		if file == "" {
			return nil, config.Errors{{Path: "data.coco." + split + "_file", Msg: "must name a file", Hint: "or choose another split"}}
		}
		return opened(data.LoadCOCO(Below(cfg.Data.Root, file), Below(cfg.Data.Root, images), options(cfg, o, "reading captions")))
	},
	splits: func(cfg config.Config) (list []string) {
		for _, split := range Splits {
			if file, _ := cfg.Data.COCO.Split(split); file != "" {
				list = append(list, split)
			}
		}
		return list
	},
	inputs: func(cfg config.Config, split string) []Input {
		file, images := cfg.Data.COCO.Split(split)
		if file == "" {
			return nil
		}
		return append(below(cfg, "data.coco."+split+"_file", file, false), below(cfg, "data.coco."+split+"_images", images, true)...)
	},
	mayLack: true,
}
