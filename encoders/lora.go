package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// LoRA is low-rank adaptation (Hu et al. 2021, section 4.1): a linear layer with parameters that
// stay as they are gets an adapter of two matrices that are trained,
//
//	y = x W^T + b + alpha/r dropout(x) A^T B^T
//
// with the parameters lora_a (r, in), which starts as PyTorch's default of a linear layer, and
// lora_b (out, r), which starts at 0: a fresh adapter changes nothing. A joint projection to
// queries, keys and values is one layer and has one adapter. With a metric M of Tuning, lora_metric,
// A reads dropout(x) M.
type LoRA struct {
	Rank    int // r; 0: no layer has an adapter
	Alpha   float64
	Dropout float64 // of the input of an adapter
	// Adapts says whether a layer has an adapter, by the name of its weight without /weight.
	Adapts func(layer string) bool
}

// Names of the parameters of an adapter, below that of its layer.
const (
	LoRADown   = "lora_a"
	LoRAUp     = "lora_b"
	LoRAMetric = "lora_metric"
)

// Scale is what the product of an adapter's matrices is multiplied with, alpha/r.
func (l LoRA) Scale() float64 { return l.Alpha / float64(l.Rank) }

// adapts says whether the linear layer s has an adapter.
func (s Scope) adapts() bool {
	return s.tuned != nil && s.tuned.LoRA.Rank > 0 && s.tuned.LoRA.Adapts(s.layer())
}

// adapted returns the output y (R, n) of the linear layer s for x (R, in), which is its columns
// from the given one on of out, with what its adapter adds.
func (s Scope) adapted(x, y *gorgonia.Node, from, out int) *gorgonia.Node {
	if !s.adapts() {
		return y
	}
	t, in, n := s.tuned, x.Shape()[1], y.Shape()[1]
	s = s.added()
	down, up := s.Param(LoRADown, LinearDefault(in), t.LoRA.Rank, in), s.Param(LoRAUp, Zeros, out, t.LoRA.Rank)
	h := nn.Linear(s.metric(LoRAMetric, t.Metric, t.context.dropout(x, t.LoRA.Dropout)), down, nil) // (R, r)
	h = arith.Combine([]float32{float32(t.LoRA.Scale())}, h)
	if n == out {
		return arith.Add(y, nn.Linear(h, up, nil))
	}
	return arith.Add(y, nn.LinearPart(h, up, nil, from, n))
}
