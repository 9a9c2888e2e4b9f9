package data

import (
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/rng"
)

// views are the columns of images of a sample, each with the name of the random stream
// of its augmentation: what a column holds is the same, bit by bit, whichever others
// are asked for.
var views = [...]struct{ column, stream string }{
	{batch.Images, rng.Augment},
	{batch.Views, rng.Augment + "/2"},
}

// applyViews writes the views of img that row has, each with an augmentation of its own.
func (cfg *TrainConfig) applyViews(img *transform.Image, c uint64, row batch.Row, w *Stopwatch) error {
	for _, v := range views {
		dst := row.Floats(v.column)
		if dst == nil {
			continue
		}
		if err := cfg.Transform.ApplyTimed(img, rng.New(cfg.Seed, v.stream, c), dst, w.transform()); err != nil {
			return err
		}
	}
	return nil
}
