package objectives

import (
	"math"

	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// MaskedLM is masked language modelling with momentum distillation (Li et al. 2021,
// eq. 4 and 7) over M rows of logits (M, V):
//
//	L = (1-alpha)*CE(labels) + alpha*H(softmax(teacher), softmax(logits))
//
// the mean over rows with a label >= 0. teacher and alpha may be nil.
func MaskedLM(logits, teacher, labels, alpha *gorgonia.Node) *gorgonia.Node {
	return contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Teacher: teacher, Labels: labels, Alpha: alpha})
}

// MaskCapacity returns M, the rows of the loss for b captions of l tokens, of which
// all but the first are selected with probability prob. The number selected varies,
// the shapes of a compiled step do not: M is its mean plus six standard deviations, which is too
// small about once in 1e9 batches, rounded up to a multiple of 8, at most all b*(l-1).
func MaskCapacity(b, l int, prob float64) int {
	n := float64(b) * float64(l-1)
	c := int(math.Ceil((n*prob + 6*math.Sqrt(n*prob*(1-prob))) / 8))
	return max(min(c*8, int(n)), 1)
}
