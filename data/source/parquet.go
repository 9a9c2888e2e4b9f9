package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// parquetTables is data.kind = "parquet": tables with images in them.
var parquetTables = fileLists("parquet", func(d config.Data, split string) []string { return d.Parquet.Split(split) },
	func(_ context.Context, _ string, paths []string, cfg config.Config, o Options) (data.Cached, error) {
		p := cfg.Data.Parquet
		return opened(data.OpenParquet(cfg.Data.Root, paths, data.ParquetConfig{Image: p.Image, Caption: p.Caption, Shuffle: p.Shuffle}, options(cfg, o, "reading tables")))
	})
