package data

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/images"
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

// crops is the random stream of the small views of an image, which are drawn one after the other.
const crops = rng.Augment + "/crops"

// hasPictures says whether a row has a picture to be drawn.
func hasPictures(row batch.Row) bool {
	return row.Floats(batch.Images) != nil || row.Floats(batch.Views) != nil || row.Floats(batch.Crops) != nil
}

// applyViews writes the views of img that row has, each with an augmentation of its own.
func (cfg *TrainConfig) applyViews(img *transform.Image, c uint64, row batch.Row, w *images.Stopwatch) error {
	for _, v := range views {
		dst := row.Floats(v.column)
		if dst == nil {
			continue
		}
		if err := cfg.Transform.ApplyTimed(img, rng.New(cfg.Seed, v.stream, c), dst, w.Transform()); err != nil {
			return err
		}
	}
	return cfg.applyCrops(img, c, row.Floats(batch.Crops), w)
}

// applyCrops writes the small views of img, if dst has room for them.
func (cfg *TrainConfig) applyCrops(img *transform.Image, c uint64, dst []float32, w *images.Stopwatch) error {
	if dst == nil {
		return nil
	}
	small := cfg.Transform
	small.Size, small.ScaleMin, small.ScaleMax = cfg.Crops.Size, cfg.Crops.ScaleMin, cfg.Crops.ScaleMax
	n := 3 * small.Size * small.Size
	if len(dst) != cfg.Crops.Count*n {
		return fmt.Errorf("data: %d small views of %d pixels a side have %d values (got room for %d)", cfg.Crops.Count,
			small.Size, cfg.Crops.Count*n, len(dst))
	}
	r := rng.New(cfg.Seed, crops, c)
	for v := range cfg.Crops.Count {
		if err := small.ApplyTimed(img, r, dst[v*n:][:n], w.Transform()); err != nil {
			return err
		}
	}
	return nil
}
