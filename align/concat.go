package align

import (
	"fmt"
	"math"
)

// Concat returns the map whose products are the mean of those of maps, weighted: an ensemble
// that is still one linear layer a side. weights are > 0; nil weighs all alike.
func Concat(weights []float64, maps ...*Linear) (*Linear, error) {
	if len(maps) == 0 || weights != nil && len(weights) != len(maps) {
		return nil, fmt.Errorf("align: %d weights for %d maps: want at least one map and a weight for each, or none",
			len(weights), len(maps))
	}
	var total float64
	for i := range maps {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		if !(w > 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("align: weight %d of a concatenation is %v: want one above 0", i, w)
		}
		total += w
	}
	out := &Linear{shape: linearShape{Widths: maps[0].shape.Widths}}
	for i, l := range maps {
		if l.shape.Widths != out.shape.Widths {
			return nil, fmt.Errorf("align: map %d takes rows of width %v and the first %v: fit both to the same features", i, l.shape.Widths, out.shape.Widths)
		}
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		out.shape.Parts = append(out.shape.Parts, l.shape.Parts...)
		for _, v := range l.shape.Weights {
			out.shape.Weights = append(out.shape.Weights, v*w/total)
		}
		for s := range out.weight {
			out.weight[s] = append(out.weight[s], l.weight[s]...)
			out.bias[s] = append(out.bias[s], l.bias[s]...)
		}
	}
	return out, nil
}
