package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// fileLists is a kind of data whose configuration lists the files of each split under section.train_files, val_files and
// test_files. names returns them, load opens what they stand for.
func fileLists(section string, names func(d config.Data, split string) []string, load func(ctx context.Context, split string, paths []string, cfg config.Config, o Options) (data.Cached, error)) lists {
	key := func(split string) string { return "data." + section + "." + split + "_files" }
	return lists{
		load: func(ctx context.Context, cfg config.Config, split string, o Options) (data.Cached, error) {
			list := names(cfg.Data, split)
			if len(list) == 0 {
				return nil, config.Errors{{Path: key(split), Msg: "must name at least one file", Hint: "or choose another split"}}
			}
			paths, err := data.Expand(cfg.Data.Root, list)
			if err != nil {
				return nil, err
			}
			return load(ctx, split, paths, cfg, o)
		},
		splits: func(cfg config.Config) (list []string) {
			for _, split := range Splits {
				if len(names(cfg.Data, split)) > 0 {
					list = append(list, split)
				}
			}
			return list
		},
		inputs: func(cfg config.Config, split string) (list []Input) {
			return append(expanded(cfg, key(split), names(cfg.Data, split)), root(cfg)) // of the images
		},
		mayLack: true,
	}
}
