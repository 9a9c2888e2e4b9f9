package source

import (
	"context"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
)

// WebDataset names the shards of data.kind = "webdataset": tar files in which the members of a pair follow each other
// and share the name up to the first dot, such as 000017.jpg and 000017.txt.
type WebDataset struct {
	SplitFiles
	// key of the .json member that holds the caption, a text or a list of texts; empty: the caption is the .txt member
	JSONKey string `toml:"json_key"`
	// samples that are mixed with each other: an epoch visits the shards in random order, and draws the order within
	// each so many samples; 1: as they lie
	Shuffle int `toml:"shuffle" max:"100000000"`
}

// Defaults implements section.Defaulter.
func (f *WebDataset) Defaults() { *f = WebDataset{Shuffle: 5000} }

// Check implements section.Checked.
func (f *WebDataset) Check(k *section.Checker) {
	splitFiles(k, "webdataset", f.Split)
	k.Positive("data.webdataset.shuffle")
}

// kind is data.kind = "webdataset".
func (*WebDataset) kind() Kind {
	return imageFiles(fileLists("webdataset", func(d Data, split string) []string { return d.WebDataset.Split(split) },
		func(ctx context.Context, _ string, paths []string, cfg Setup, o Options) (data.Cached, error) {
			w := cfg.Data.WebDataset
			c := data.ShardsConfig{JSONKey: w.JSONKey, Shuffle: w.Shuffle, IndexDir: cfg.Data.CacheDir, Warn: o.Warn}
			return opened(data.OpenShards(ctx, paths, c, options(cfg, o, "indexing shards")))
		}))
}
