package source

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
)

// storedPairs is data.kind = "pairs": files of stored features, rows in step. The files
// stay open to the end of the process, as the streams and galleries of them do.
var storedPairs = Kind{
	Splits: func(cfg config.Config) []string {
		list := []string{"train"}
		if cfg.Data.Pairs.ValSamples > 0 {
			list = append(list, "val")
		}
		if cfg.Data.Pairs.TestSamples > 0 {
			list = append(list, "test")
		}
		return list
	},
	MayLack: true,
	Inputs: func(cfg config.Config, _ string) []Input {
		p := cfg.Data.Pairs
		return append(below(cfg, "data.pairs.image", p.Image, false), below(cfg, "data.pairs.text", p.Text, false)...)
	},
	Stream: func(cfg config.Config, _ Options) (data.Stream, error) {
		p, err := Pairs(cfg)
		if err != nil {
			return nil, err
		}
		return p.Stream(), nil
	},
	Galleries: func(cfg config.Config, split string) (data.Galleries, error) {
		p, err := Pairs(cfg)
		if err != nil {
			return nil, err
		}
		set, err := p.Set(split, cfg.Eval.MaxImages)
		if err != nil {
			return nil, err
		}
		return set, nil
	},
}

// Pairs opens the stored features of a configuration. Close them after use.
func Pairs(cfg config.Config) (*features.Pairs, error) {
	d := cfg.Data
	p, err := features.Open(features.PairsConfig{
		Image:       Below(d.Root, d.Pairs.Image),
		Text:        Below(d.Root, d.Pairs.Text),
		ImageTensor: d.Pairs.ImageTensor,
		TextTensor:  d.Pairs.TextTensor,
		Division: features.Division{
			ValSamples:  d.Pairs.ValSamples,
			TestSamples: d.Pairs.TestSamples,
			Hold:        features.Hold(d.Pairs.Hold),
			Seed:        d.Pairs.Seed,
			Paired:      d.Pairs.Paired,
		},
	}, cfg.Run.Seed)
	return p, rootHint(err, d.Root)
}
