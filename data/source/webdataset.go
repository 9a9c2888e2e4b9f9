package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// shards is data.kind = "webdataset": tar files of samples.
var shards = fileLists("webdataset", func(d config.Data, split string) []string { return d.WebDataset.Split(split) },
	func(ctx context.Context, _ string, paths []string, cfg config.Config, o Options) (data.Cached, error) {
		c := data.ShardsConfig{
			JSONKey:  cfg.Data.WebDataset.JSONKey,
			Shuffle:  cfg.Data.WebDataset.Shuffle,
			IndexDir: cfg.Data.CacheDir,
			Warn:     o.Warn,
		}
		return opened(data.OpenShards(ctx, paths, c, options(cfg, o, "indexing shards")))
	})
