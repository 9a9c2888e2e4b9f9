package source

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// classFolders is data.kind = "folder": a folder of images for every class.
var classFolders = lists{
	load: func(cfg config.Config, split string) (*data.Files, error) {
		return data.LoadFolder(cfg.Data.Root, split, options(cfg))
	},
	inputs: func(cfg config.Config, _ string) []Input { return []Input{root(cfg)} },
	splits: func(cfg config.Config) []string {
		if list, err := data.FolderSplits(cfg.Data.Root); err == nil {
			return list
		}
		return Splits // opening one of them says what is wrong
	},
}
