package model

import (
	"slices"

	"github.com/geoalign/geoalign/config"
)

// checkAdapters refuses a glob of model.lora.layers that no layer of the step has matched.
func (b *builder) checkAdapters() error {
	layers := b.cfg.Model.LoRA.Layers
	i := slices.IndexFunc(layers, func(g string) bool { return !b.matched[g] })
	if !b.cfg.Model.Adapts() || i < 0 {
		return nil
	}
	return config.Errors{{Path: "model.lora.layers", Value: layers[i], Msg: "matches no linear layer of a transformer or fusion layer that is not frozen",
		Hint: "trainer inspect, or trainer train --dry-run without it, lists the names of parameters"}}
}
