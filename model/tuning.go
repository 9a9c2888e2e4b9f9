package model

import (
	"path"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
)

// tuned returns the scope of a tower or of fusion layers with the tuning of a model's configuration. The
// dropout of adapters is that of c.
func tuned(m config.Model, s encoders.Scope, c *encoders.Context) encoders.Scope {
	return tunedBy(m, s, c, map[string]bool{})
}

// tunedBy is tuned that notes which globs of model.lora.layers have matched a layer.
func tunedBy(m config.Model, s encoders.Scope, c *encoders.Context, matched map[string]bool) encoders.Scope {
	if !m.Tunes() {
		return s
	}
	t, globs := m.Tuning, m.LoRA.Globs()
	return s.Tuned(encoders.Tuning{
		LoRA: encoders.LoRA{Rank: m.LoRA.Rank, Alpha: m.LoRA.Alpha, Dropout: m.LoRA.Dropout, Adapts: func(layer string) (any bool) {
			for _, g := range globs {
				if ok, _ := path.Match(g, layer); ok {
					any, matched[g] = true, true
				}
			}
			return any
		}},
		Adapter: encoders.Adapter{Width: t.AdapterWidth, Activation: t.AdapterActivation},
		Prompts: encoders.Prompts{Tokens: t.PromptTokens, Deep: t.PromptDeep},
		SSF:     t.SSF, BitFit: t.BitFit, Blocks: t.PartialBlocks,
		Metric: encoders.Metric{Form: t.Metric, Blocks: t.MetricBlocks},
	}, c)
}
