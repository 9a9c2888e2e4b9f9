package encoders

import (
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TaskHead is the classifier of a downstream task over the first fused token (ALBEF's published code):
//
//	z = W relu(V x + v) + w
//
// with V (D, D). The parameters are dense/weight and dense/bias, classifier/weight and classifier/bias, from PyTorch's
// defaults.
type TaskHead struct{ Classes int }

// Forward gives rows x (R, D) their logits (R, Classes).
func (h TaskHead) Forward(s Scope, x *gorgonia.Node) *gorgonia.Node {
	d := columns("task head", x)
	return linear(s, "classifier", torchLinear, nn.ReLU(linear(s, "dense", torchLinear, x, d)), h.Classes)
}
