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

// ClassHead tells the classes of rows x (R, D), the class tokens or pooled tokens of a tower: logits W x + b, with Norm
// W norm(x) + b.
//
// The parameters are classifier/weight, N(0, .02^2), and classifier/bias, 0, as of timm's vision transformers, and with
// Norm norm/weight and norm/bias.
type ClassHead struct {
	Classes int
	Norm    bool
}

// classNormEps is timm's of vision transformers.
const classNormEps = 1e-6

// Logits returns (R, Classes).
func (h ClassHead) Logits(s Scope, x *gorgonia.Node) *gorgonia.Node {
	columns("class head", x)
	if h.Classes < 2 {
		misuse("class head", x, "want at least 2 classes (got %d)", h.Classes)
	}
	if h.Norm {
		x = norm(s, "norm", x, classNormEps)
	}
	return linear(s, "classifier", from(bertInit), x, h.Classes)
}
