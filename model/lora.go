package model

import (
	"path"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
)

// adapted returns the scope of a tower or of fusion layers with the adapters of a model's
// configuration, whose dropout is that of c.
func adapted(m config.Model, s encoders.Scope, c *encoders.Context) encoders.Scope {
	return adaptedBy(m, s, c, map[string]bool{})
}

// adaptedBy is adapted that notes which globs have matched a layer.
func adaptedBy(m config.Model, s encoders.Scope, c *encoders.Context, matched map[string]bool) encoders.Scope {
	if !m.Adapts() {
		return s
	}
	globs := m.LoRA.Globs()
	return s.Adapted(encoders.LoRA{Rank: m.LoRA.Rank, Alpha: m.LoRA.Alpha, Dropout: m.LoRA.Dropout, Adapts: func(layer string) (any bool) {
		for _, g := range globs {
			if ok, _ := path.Match(g, layer); ok {
				any, matched[g] = true, true
			}
		}
		return any
	}}, c)
}

// checkAdapters refuses a glob of model.lora.layers that no layer of the step has matched.
func (b *builder) checkAdapters() error {
	layers := b.cfg.Model.LoRA.Layers
	i := slices.IndexFunc(layers, func(g string) bool { return !b.matched[g] })
	if !b.cfg.Model.Adapts() || i < 0 {
		return nil
	}
	return config.Errors{{Path: "model.lora.layers", Value: layers[i], Msg: "matches no linear layer of a tower or fusion layer that is not frozen",
		Hint: "trainer inspect, or trainer train --dry-run without it, lists the names of parameters"}}
}

// MergeLoRA adds the product of an adapter's matrices to the weight of its layer (Hu et al. 2021,
// section 4.1): W + scale B A, for weight (out, in), down A (r, in) and up B (out, r), row by row.
// Sums are made in float64.
func MergeLoRA(weight, down, up []float32, rank int, scale float64) {
	in := len(down) / rank
	for o := range len(up) / rank {
		row := weight[o*in:][:in]
		for i := range row {
			sum := 0.0
			for k := range rank {
				sum += float64(up[o*rank+k]) * float64(down[k*in+i])
			}
			row[i] = float32(float64(row[i]) + scale*sum)
		}
	}
}
