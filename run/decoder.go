package run

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/images"
)

// UseDecoder chooses what decodes JPEG files by data.decoder, before images are read, and warns on standard error of
// libraries that were passed over, once in the life of the process.
func UseDecoder(cfg config.Config) error {
	_, warnings, err := images.UseDecoder(cfg.Data.Decoder)
	for _, w := range warnings {
		warnOnce(w)
	}
	return err
}
