package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// flickr is data.kind = "flickr": lines of image#number and a caption, with a list of images for each split.
var flickr = lists{
	load: func(_ context.Context, cfg config.Config, split string, o Options) (data.Cached, error) {
		f := cfg.Data.Flickr
		list := f.Split(split)
		switch {
		case list != "":
			list = Below(cfg.Data.Root, list)
		case split != "train":
			return nil, config.Errors{{Path: "data.flickr." + split + "_list", Msg: "must name a file", Hint: "or choose another split"}}
		}
		return opened(data.LoadFlickr(Below(cfg.Data.Root, f.File), Below(cfg.Data.Root, f.ImageRoot), list, options(cfg, o, "reading captions")))
	},
	splits: func(cfg config.Config) (list []string) {
		for _, split := range Splits {
			if split == "train" || cfg.Data.Flickr.Split(split) != "" {
				list = append(list, split)
			}
		}
		return list
	},
	inputs: func(cfg config.Config, split string) []Input {
		f := cfg.Data.Flickr
		list := append(below(cfg, "data.flickr.file", f.File, false), below(cfg, "data.flickr.image_root", f.ImageRoot, true)...)
		if name := f.Split(split); name != "" {
			list = append(list, below(cfg, "data.flickr."+split+"_list", name, false)...)
		}
		return list
	},
	mayLack: true,
}
