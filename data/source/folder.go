package source

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data"
)

// Folder is data.kind = "folder", which has no keys of its own.
type Folder struct{}

func (*Folder) kind() Kind {
	return imageFiles(lists{
		load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
			if have, err := data.FolderSplits(cfg.Data.Root); err == nil && !slices.Contains(have, split) {
				return nil, fmt.Errorf("data: %s (data.root) has no folder %q, only %s: make it, or choose another "+
					"split (eval.split)", cfg.Data.Root, split, strings.Join(have, " and "))
			}
			return opened(data.LoadFolder(cfg.Data.Root, split, options(cfg, o, "reading folders of classes")))
		},
		inputs: func(cfg Setup, _ string) []Input { return []Input{root(cfg)} },
		splits: func(cfg Setup) []string {
			if list, err := data.FolderSplits(cfg.Data.Root); err == nil {
				return list
			}
			return Splits // opening one of them says what is wrong
		},
	})
}
