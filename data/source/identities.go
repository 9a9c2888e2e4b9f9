package source

import (
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/words"
)

// checkIdentities says what a stream makes of identities with few images, and whether a classifier has a row for each
// identity.
func (o Options) checkIdentities(cfg config.Config, s data.Stream) error {
	x, ok := s.(data.IdentityStream)
	if !ok {
		return config.Errors{{Path: "data.kind", Value: cfg.Data.Kind, Msg: fmt.Sprintf("has no identities for model.system %q", cfg.Model.System),
			Hint: `use "folder", "csv" or another kind of images in files, or "scenes"`}}
	}
	if c := x.IdentityCounts(); c.Short > 0 && o.Warn != nil {
		what := "their images are drawn again"
		if cfg.Data.Identities.Short == "leave_out" {
			what = "they are left out"
		}
		o.Warn(fmt.Sprintf("identities of the training data with fewer than %s: %s of %s, and %s (data.identities.short)",
			words.Count(cfg.Data.Identities.Images, "image"), words.Thousands(c.Short), words.Thousands(x.NumIdentities()), what))
	}
	if c, n := cfg.Objective.Softmax, x.NumIdentities(); c.Weight > 0 && c.Classes < n {
		return config.Errors{{Path: "objective.softmax.classes", Value: c.Classes, Msg: fmt.Sprintf("must be at least %d, the identities of the training data", n), Hint: "set it to that"}}
	}
	return nil
}
