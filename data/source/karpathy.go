package source

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// karpathy is data.kind = "karpathy": the splits of Karpathy and Li in one JSON file.
var karpathy = lists{
	load: func(_ context.Context, cfg config.Config, split string, o Options) (data.Cached, error) {
		d := cfg.Data
		return opened(data.LoadKarpathy(Below(d.Root, d.Karpathy.File), Below(d.Root, d.Karpathy.ImageRoot), split, options(cfg, o, "reading captions")))
	},
	inputs: func(cfg config.Config, _ string) []Input {
		d := cfg.Data
		return append(below(cfg, "data.karpathy.file", d.Karpathy.File, false), below(cfg, "data.karpathy.image_root", d.Karpathy.ImageRoot, true)...)
	},
	splits: func(config.Config) []string { return Splits },
}
