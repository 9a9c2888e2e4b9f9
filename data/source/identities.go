package source

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/words"
)

// Identities says how batches are made of images with identities, for model.system "identities": of
// train.batch_size / images identities with so many images each.
type Identities struct {
	// of each identity in a batch, a divisor of train.batch_size; an epoch visits every identity once
	Images int `toml:"images" max:"65536"`
	// identities with fewer images: repeat (their images are drawn again, each with its own augmentation) | leave_out
	Short string `toml:"short"`
}

// Defaults implements section.Defaulter.
func (d *Identities) Defaults() { *d = Identities{Images: 4, Short: "repeat"} }

// Check implements section.Checked.
func (d *Identities) Check(k *section.Checker) {
	k.OneOf("data.identities.short", "repeat", "leave_out")
	k.Positive("data.identities.images")
	if k.Has(section.Identities) && d.Images > 0 {
		k.Require("data.identities.images", int(k.Number("train.batch_size"))%d.Images == 0 &&
			int(k.Number("train.batch_size"))/d.Images >= 2, "must divide train.batch_size into at least 2 identities",
			"a batch is so many images of each of some identities")
	}
}

// Of returns the number of identities of a batch.
func (d Identities) Of(batch int) int { return batch / max(1, d.Images) }

// checkIdentities says what a stream makes of identities with few images, and whether a classifier has a row for each
// identity.
func (o Options) checkIdentities(cfg Setup, s data.Stream) error {
	x, ok := s.(data.IdentityStream)
	if !ok {
		return section.Errors{{Path: "data.kind", Value: cfg.Data.Kind,
			Msg:  fmt.Sprintf("has no identities for model.system %q", cfg.System),
			Hint: `use "folder", "csv" or another kind of images in files, or "scenes"`}}
	}
	if c := x.IdentityCounts(); c.Short > 0 && o.Warn != nil {
		what := "their images are drawn again"
		if cfg.Data.Identities.Short == "leave_out" {
			what = "they are left out"
		}
		o.Warn(fmt.Sprintf("identities of the training data with fewer than %s: %s of %s, and %s (data.identities.short)",
			words.Count(cfg.Data.Identities.Images, "image"), words.Thousands(c.Short),
			words.Thousands(x.NumIdentities()), what))
	}
	if n := x.NumIdentities(); cfg.Classes > 0 && cfg.Classes < n {
		return section.Errors{{Path: "objective.softmax.classes", Value: cfg.Classes,
			Msg: fmt.Sprintf("must be at least %d, the identities of the training data", n), Hint: "set it to that"}}
	}
	return nil
}
