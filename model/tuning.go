package model

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
)

// tuned returns the scope of a tower or of fusion layers with the tuning of a model's configuration. The
// dropout of adapters is that of c.
func tuned(m config.Model, s encoders.Scope, c *encoders.Context) encoders.Scope {
	return s.Tuned(m.Tuning, m.LoRA, c)
}

// checkAdapters refuses a glob of model.lora.layers that no layer of the step has matched.
func (b *builder) checkAdapters() error {
	if !b.s.Has(section.Adapters) {
		return nil
	}
	for _, glob := range b.cfg.Model.LoRA.Layers {
		one := encoders.LoRA{Layers: []string{glob}}
		if !slices.ContainsFunc(b.Trainer.params.List(), func(q *Param) bool {
			layer, adapter := strings.CutSuffix(q.Name, "/"+encoders.LoRADown)
			return adapter && one.Adapts(layer)
		}) {
			return config.Errors{{Path: "model.lora.layers", Value: glob,
				Msg:  "matches no linear layer of a transformer or fusion layer that is not frozen",
				Hint: "trainer inspect, or trainer train --dry-run without it, lists the names of parameters"}}
		}
	}
	return nil
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

// MergeMetric makes down (r, in), which reads x M, read x: its rows become A M^T, for a metric M of
// blocks (N, d, d) with N d = in, of which a dense one has one, or with d = 1 the diagonal (in). Sums are
// made in float64.
func MergeMetric(down, metric []float32, rank, d int) {
	in := len(down) / rank
	row := make([]float32, d)
	for k := range rank {
		for b := 0; b < in; b += d {
			a := down[k*in+b:][:d]
			copy(row, a)
			for i := range d {
				sum := 0.0
				for j, v := range row {
					sum += float64(metric[(b+i)*d+j]) * float64(v)
				}
				a[i] = float32(sum)
			}
		}
	}
}

// MergeSSF makes a layer give what its scale and shift (out) make of it (Lian et al. 2022, equation 4): its
// weight (out, in), of a norm (out), is scaled row by row, and so is its bias, to which the shift is added.
// A layer without a bias, nil, has no shift.
func MergeSSF(weight, bias, scale, shift []float32) {
	in := len(weight) / len(scale)
	for o, g := range scale {
		row := weight[o*in:][:in]
		for i := range row {
			row[i] *= g
		}
		if bias != nil {
			bias[o] = float32(float64(g)*float64(bias[o]) + float64(shift[o]))
		}
	}
}
