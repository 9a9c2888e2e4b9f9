package objectives

import (
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// MaskedLM is masked language modelling with momentum distillation (Li et al. 2021,
// eq. 4 and 7) over M rows of logits (M, V):
//
//	L = (1-alpha)*CE(labels) + alpha*H(softmax(teacher), softmax(logits))
//
// the mean over rows with a label >= 0. teacher and alpha may be nil.
func MaskedLM(logits, teacher, labels, alpha *gorgonia.Node) *gorgonia.Node {
	return ops.CrossEntropy(ops.CrossEntropyArgs{Logits: logits, Teacher: teacher, Labels: labels, Alpha: alpha})
}
