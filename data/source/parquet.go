package source

import (
	"context"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
)

// Parquet names the tables of data.kind = "parquet", as Hugging Face's datasets exports them.
type Parquet struct {
	SplitFiles
	// column of the image: a group of bytes and path, bytes, or a path below data.root
	Image string `toml:"image"`
	// column of the caption, a string or a list of strings
	Caption string `toml:"caption"`
	// samples that are mixed with each other, see data.webdataset.shuffle; twice as many encoded images are kept in
	// memory, and a page of the file more
	Shuffle int `toml:"shuffle" max:"100000000"`
}

// Defaults implements section.Defaulter.
func (f *Parquet) Defaults() { *f = Parquet{Image: "image", Caption: "caption", Shuffle: 1000} }

// Check implements section.Checked.
func (f *Parquet) Check(k *section.Checker) {
	splitFiles(k, "parquet", f.Split)
	k.Require("data.parquet.image", f.Image != "", "must name a column")
	k.Require("data.parquet.caption", f.Caption != "", "must name a column")
	k.Positive("data.parquet.shuffle")
}

// kind is data.kind = "parquet".
func (*Parquet) kind() Kind {
	return imageFiles(fileLists("parquet", func(d Data, split string) []string { return d.Parquet.Split(split) },
		func(_ context.Context, _ string, paths []string, cfg Setup, o Options) (data.Cached, error) {
			p := cfg.Data.Parquet
			return opened(data.OpenParquet(cfg.Data.Root, paths, data.ParquetConfig{Image: p.Image, Caption: p.Caption,
				Shuffle: p.Shuffle}, options(cfg, o, "reading tables")))
		}))
}
