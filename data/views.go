package data

import (
	"fmt"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/rng"
)

// MaxViews is the largest number of views of an image.
const MaxViews = 2

// viewStreams are the names of the random streams of the augmentations, one for
// each view: the first view of a sample is the same, bit by bit, however many there
// are.
var viewStreams = [MaxViews]string{rng.Augment, rng.Augment + "/2"}

// applyViews writes views of img to dst, (V, 3, S, S), each with an augmentation of
// its own. The number of views V is what dst has room for, 1 or 2.
func (cfg *TrainConfig) applyViews(img *transform.Image, c uint64, dst []float32, w *Stopwatch) error {
	row := 3 * cfg.Transform.Size * cfg.Transform.Size
	n, err := numViews(len(dst), row)
	if err != nil {
		return err
	}
	for v := range n {
		if err := cfg.Transform.ApplyTimed(img, rng.New(cfg.Seed, viewStreams[v], c), dst[v*row:(v+1)*row], w.transform()); err != nil {
			return err
		}
	}
	return nil
}

// numViews is the number of views of row values each that fill n values.
func numViews(n, row int) (int, error) {
	for v := 1; v <= MaxViews; v++ {
		if n == v*row {
			return v, nil
		}
	}
	return 0, fmt.Errorf("data: a sample has 1 or 2 views of %d values (got room for %d)", row, n)
}
