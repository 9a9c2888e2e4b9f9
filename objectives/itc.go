package objectives

import (
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// Positives says which columns are positives of which rows: either Labels, the
// column of each row's own pair, or the image ids of rows and columns, by which all
// captions of one image are positives (ALBEF retrieval fine-tuning).
type Positives struct {
	Labels         *gorgonia.Node // (B) int32
	RowIDs, ColIDs *gorgonia.Node // (B), (B+Q) int32
}

// MomentumContrast is image-text contrast against momentum features and a queue of
// past ones, with momentum distillation (Li et al. 2021, eq. 1, 2 and 6):
//
//	s_i2t = f_I . [g_T^m | Q_T] / tau                 (B, B+Q)
//	y     = (1-alpha)*hard + alpha*softmax(s^m_i2t)
//	L     = (H(y_i2t, softmax(s_i2t)) + H(y_t2i, softmax(s_t2i))) / 2
//
// where s^m has the momentum features in place of f. Gradient flows to Image, Text
// and Temperature through s only.
type MomentumContrast struct {
	Image, Text           *gorgonia.Node // (B, C) unit rows
	ImageM, TextM         *gorgonia.Node // (B, C) unit rows of the momentum encoders
	ImageQueue, TextQueue *gorgonia.Node // (Q, C), or nil
	Cols                  *gorgonia.Node // number of columns that exist, int32 scalar; nil: all
	Temperature           *gorgonia.Node // tau, scalar
	Alpha                 *gorgonia.Node // scalar; nil: no distillation
	Positives             Positives
}

// Contrast is a contrastive loss with the logits of both directions.
type Contrast struct {
	Loss *gorgonia.Node // scalar
	I2T  *gorgonia.Node // (B, columns) logits, divided by the temperature
	T2I  *gorgonia.Node
}

// Build adds the loss to the graph.
func (c MomentumContrast) Build() Contrast {
	score := func(f, keys, queue *gorgonia.Node) *gorgonia.Node {
		return ops.DivScalar(ops.Similarity(f, keys, queue, c.Cols), c.Temperature)
	}
	i2t := score(c.Image, c.TextM, c.TextQueue) // (B, B+Q)
	t2i := score(c.Text, c.ImageM, c.ImageQueue)
	var teacherI, teacherT *gorgonia.Node
	if c.Alpha != nil {
		teacherI = score(c.ImageM, c.TextM, c.TextQueue)
		teacherT = score(c.TextM, c.ImageM, c.ImageQueue)
	}
	loss := func(logits, teacher *gorgonia.Node) *gorgonia.Node {
		return ops.CrossEntropy(ops.CrossEntropyArgs{
			Logits: logits, Teacher: teacher, Alpha: c.Alpha, Cols: c.Cols,
			Labels: c.Positives.Labels, RowIDs: c.Positives.RowIDs, ColIDs: c.Positives.ColIDs,
		})
	}
	return Contrast{
		Loss: ops.WeightedSum([]float32{.5, .5}, loss(i2t, teacherI), loss(t2i, teacherT)),
		I2T:  i2t, T2I: t2i,
	}
}

// InBatchContrast is the symmetric contrast within a batch with gradient to both
// sides (Radford et al. 2021), which lets a model without pretrained encoders start:
//
//	s = f_I f_T^T / tau,  L = (CE(s) + CE(s^T)) / 2
func InBatchContrast(image, text, temperature *gorgonia.Node, p Positives) Contrast {
	i2t := ops.DivScalar(ops.Similarity(image, text, nil, nil), temperature) // (B, B)
	t2i := ops.Transpose(i2t)
	loss := func(logits *gorgonia.Node) *gorgonia.Node {
		return ops.CrossEntropy(ops.CrossEntropyArgs{Logits: logits, Labels: p.Labels, RowIDs: p.RowIDs, ColIDs: p.ColIDs})
	}
	return Contrast{
		Loss: ops.WeightedSum([]float32{.5, .5}, loss(i2t), loss(t2i)),
		I2T:  i2t, T2I: t2i,
	}
}
