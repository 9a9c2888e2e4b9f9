package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// csvTables is data.kind = "csv": tables of paths and captions.
var csvTables = fileLists("csv", func(d config.Data, split string) []string { return d.Split.Files(split, d.CSV.Split) },
	func(_ context.Context, split string, paths []string, cfg config.Config, o Options) (data.Cached, error) {
		c := cfg.Data.CSV
		return opened(data.LoadCSV(cfg.Data.Root, paths, data.CSVConfig{Image: c.Image, Caption: c.Caption, ID: c.ID, Camera: c.Camera, Role: c.Role, Comma: c.Comma(), LazyQuotes: c.LazyQuotes, Unquoted: c.Quoting == config.QuotingNone}, divided(cfg, split, options(cfg, o, "reading tables, in MiB"))))
	})
