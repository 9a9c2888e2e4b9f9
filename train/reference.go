package train

import (
	"fmt"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives"
)

// references are the values of objective.klot.reference.
var references = map[string]align.Method{"cca": align.CCA{}, "procrustes": align.Procrustes{}}

// refer gives a model what objective.klot reads: the alignment, fitted to the training pairs,
// and the training rows of both sides to draw unpaired ones from. A run that goes on fits it
// again, to the same rows. The files stay open to the end of the process, as those of streams
// do.
func refer(o *model.Options, cfg config.Config) error {
	c := cfg.Objective.KLOT
	if c.Weight == 0 {
		return nil
	}
	p, err := source.Pairs(cfg)
	if err != nil {
		return err
	}
	rows, err := p.Rows("train")
	if err != nil {
		return err
	}
	pairs := align.Pairs{Image: p.Images(), Text: p.Texts()}.Select(rows)
	m, err := references[c.Reference].Fit(o.Engine, pairs)
	if err != nil {
		return fmt.Errorf("objective.klot.reference: %w", err)
	}
	l := m.(*align.Linear) // as those of references are
	layer := func(s align.Side) (x objectives.Layer) {
		x.Weight, x.Bias = l.Layer(s)
		return x
	}
	o.Reference = &objectives.Reference{Image: layer(align.Image), Text: layer(align.Text)}
	o.Pools = objectives.Pools{Image: pairs.Image, Text: pairs.Text}
	return nil
}
