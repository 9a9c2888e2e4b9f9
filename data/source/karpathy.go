package source

import (
	"context"

	"github.com/geoalign/geoalign/config/section"

	"github.com/geoalign/geoalign/data"
)

// Karpathy is the file of data.kind = "karpathy".
type Karpathy struct {
	// the dataset_*.json
	File string `toml:"file"`
	// folder of the images, below data.root unless absolute; empty: data.root
	ImageRoot string `toml:"image_root"`
}

// Check implements section.Checked.
func (f *Karpathy) Check(k *section.Checker) {
	k.Require("data.karpathy.file", section.Of[Data](k).Kind != "karpathy" || f.File != "",
		`must name the dataset_*.json for data.kind "karpathy"`)
}

// karpathy is data.kind = "karpathy": the splits of Karpathy and Li in one JSON file.
var karpathy = lists{
	load: func(_ context.Context, cfg Setup, split string, o Options) (data.Cached, error) {
		d := cfg.Data
		return opened(data.LoadKarpathy(Below(d.Root, d.Karpathy.File), Below(d.Root, d.Karpathy.ImageRoot), split,
			options(cfg, o, "reading captions")))
	},
	inputs: func(cfg Setup, _ string) []Input {
		d := cfg.Data
		return append(Under(cfg, "data.karpathy.file", d.Karpathy.File, false),
			Under(cfg, "data.karpathy.image_root", d.Karpathy.ImageRoot, true)...)
	},
	splits: func(Setup) []string { return Splits },
}

func (*Karpathy) kind() Kind { return imageFiles(karpathy) }
