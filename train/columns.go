package train

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/batch"
)

// Columns returns the columns of a batch that the model of a configuration reads.
func Columns(cfg config.Config) []batch.Column {
	if h := cfg.Model.Heads; cfg.Model.System == "heads" {
		return []batch.Column{
			{Name: batch.ImageFeatures, Shape: []int{h.InImage}},
			{Name: batch.TextFeatures, Shape: []int{h.InText}},
			{Name: batch.IDs, Type: batch.Int32},
		}
	}
	size := []int{3, cfg.Model.Image.Size, cfg.Model.Image.Size}
	list := []batch.Column{{Name: batch.Images, Shape: size}, {Name: batch.IDs, Type: batch.Int32}}
	if cfg.Data.Views > 1 {
		list = append(list, batch.Column{Name: batch.Views, Shape: size})
	}
	if !cfg.Model.ImagesOnly() {
		list = append(list,
			batch.Column{Name: batch.Tokens, Shape: []int{cfg.Data.Tokens}, Type: batch.Int32},
			batch.Column{Name: batch.Lengths, Type: batch.Int32})
	}
	return list
}
