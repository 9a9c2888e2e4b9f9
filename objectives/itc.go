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
//	s_i2t = score(f_I, bank of texts) / tau           (B, columns)
//	y     = (1-alpha)*hard + alpha*softmax(s^m_i2t)
//	L     = (H(y_i2t, softmax(s_i2t)) + H(y_t2i, softmax(s_t2i))) / 2
//
// where s^m has the momentum features in place of f. Gradient flows to Image, Text
// and the temperature through s only.
type MomentumContrast struct {
	Image, Text         *gorgonia.Node // (B, C) unit rows
	ImageM, TextM       *gorgonia.Node // (B, C) unit rows of the momentum encoders
	ImageBank, TextBank *Bank
	Score, Target       Score          // of the student and of the teacher
	Weigh               *gorgonia.Node // scalar w: logits get w times the teacher's geodesic score (without gradient); nil: none
	Alpha               *gorgonia.Node // scalar; nil: no distillation
	Positives           Positives
	GeodesicNegatives   bool // the logits returned are the teacher's geodesic scores
	CosineNegatives     bool // the logits returned are cosines
}

// Contrast is a contrastive loss with the logits of both directions.
type Contrast struct {
	Loss *gorgonia.Node // scalar
	I2T  *gorgonia.Node // (B, M) logits, divided by the temperature; the first B columns are the batch
	T2I  *gorgonia.Node
}

// Build adds the loss to the graph.
func (c MomentumContrast) Build() Contrast {
	i2t, negI2T := c.direction(c.Image, c.ImageM, c.TextBank)
	t2i, negT2I := c.direction(c.Text, c.TextM, c.ImageBank)
	return Contrast{Loss: ops.WeightedSum([]float32{.5, .5}, i2t, t2i), I2T: negI2T, T2I: negT2I}
}

// direction returns the loss of features f, whose teacher is m, against a bank of the
// other modality, and the logits to draw negatives by.
func (c MomentumContrast) direction(f, m *gorgonia.Node, b *Bank) (loss, negatives *gorgonia.Node) {
	logits := c.Score.Logits(b, f, c.Positives)
	if c.Weigh != nil {
		logits = ops.AddScaled(logits, b.Geodesic(m, c.Target.Paths, c.Positives), c.Weigh)
	}
	var teacher *gorgonia.Node
	if c.Alpha != nil {
		teacher = c.Target.Logits(b, m, c.Positives)
	}
	loss = ops.CrossEntropy(ops.CrossEntropyArgs{
		Logits: logits, Teacher: teacher, Alpha: c.Alpha, Cols: b.Cols,
		Labels: c.Positives.Labels, RowIDs: c.Positives.RowIDs, ColIDs: c.Positives.ColIDs,
	})
	negatives = logits
	switch {
	case c.GeodesicNegatives:
		negatives = ops.DivScalar(b.Geodesic(m, c.Target.Paths, c.Positives), c.Target.Temperature)
	case c.CosineNegatives:
		negatives = ops.DivScalar(b.Cosine(f), c.Score.Temperature)
	}
	return loss, b.Batch(negatives)
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
