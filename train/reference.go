package train

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/model"
)

// refer gives a model what objective.klot reads: the alignment, fitted to the training pairs,
// and the pools of both sides to draw further rows from, where it has none. A run that goes on
// fits it again, to the same rows. They are those of the stream, which stays open meanwhile; of another one they are
// opened, and stay open to the end of the process.
func refer(o *model.Options, cfg config.Config, stream data.Stream) error {
	c := cfg.Objective.KLOT
	if c.Weight == 0 {
		return nil
	}
	var p *features.Pairs
	if s, ok := stream.(*features.Stream); ok {
		p = s.Pairs()
	} else {
		var err error
		if p, err = source.OpenPairs(cfg.Source()); err != nil {
			return err
		}
	}
	pairs, err := TrainingPairs(p)
	if err != nil {
		return err
	}
	if o.Reference, err = model.FitReference(context.Background(), cfg, o.Engine, pairs); err != nil {
		return fmt.Errorf("objective.klot.reference: %w", err)
	}
	if c.Rows > 0 && o.ImagePool == nil {
		if o.ImagePool, err = p.ImagePool(); err != nil {
			return err
		}
	}
	if c.Rows > 0 && o.TextPool == nil {
		if o.TextPool, err = p.TextPool(); err != nil {
			return err
		}
	}
	return nil
}

// TrainingPairs are the pairs of the training split as package align reads them, centred where the
// heads see them so.
func TrainingPairs(p *features.Pairs) (align.Pairs, error) {
	list, err := p.Split("train")
	return alignPairs(p, list), err
}

// TrainingImages are the pairs of TrainingPairs of an image and its first text, each image once.
func TrainingImages(p *features.Pairs) (align.Pairs, error) {
	list, err := p.Split("train")
	once := slices.CompactFunc(slices.Clone(list), func(a, b features.Pair) bool { return a.Image == b.Image })
	return alignPairs(p, once), err
}

// alignPairs are pairs as package align reads them.
func alignPairs(p *features.Pairs, list []features.Pair) align.Pairs {
	images, texts := make([]int32, len(list)), make([]int32, len(list))
	for i, q := range list {
		images[i], texts[i] = q.Image, q.Text
	}
	x, y := p.Centred()
	return align.Pairs{Image: align.Select(x, images), Text: align.Select(y, texts)}
}
