package objectives

import (
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Positives says which columns are positives of which rows: either Labels, the
// column of each row's own pair, or the image ids of rows and columns, by which all
// captions of one image are positives (ALBEF retrieval fine-tuning).
type Positives struct {
	Labels         *gorgonia.Node // (B) int32
	RowIDs, ColIDs *gorgonia.Node // (B), (B+Q) int32

	// Further returns a further positive column of each row of both directions, (B) int32,
	// -1 for none, from their logits, whose first B columns are the batch; nil: there are
	// none, as everywhere but with relabelled negatives.
	Further func(i2t, t2i *gorgonia.Node) (forI2T, forT2I *gorgonia.Node)
	// Uniform is the scalar share of the uniform distribution in the targets; nil: none.
	Uniform *gorgonia.Node
}

func (p Positives) further(i2t, t2i *gorgonia.Node) (forI2T, forT2I *gorgonia.Node) {
	if p.Further == nil {
		return nil, nil
	}
	return p.Further(i2t, t2i)
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
	Score, Target       Score // of the student and of the teacher
	// scalar w: logits get w times the teacher's geodesic score (without gradient); nil: none
	Weigh      *gorgonia.Node
	WeighPaths Paths          // of that score
	Alpha      *gorgonia.Node // scalar; nil: no distillation
	Positives  Positives
	Terms      gorgonia.Nodes // further terms of the loss, which is the mean of all
	// Negatives is the score whose logits are returned, to draw negatives by: a geodesic one
	// of the teacher's features, any other of the student's. nil: the logits of the loss.
	Negatives *Score
}

// Contrast is a contrastive loss with the logits of both directions.
type Contrast struct {
	Loss *gorgonia.Node // scalar
	I2T  *gorgonia.Node // (B, M) logits, divided by the temperature; the first B columns are the batch
	T2I  *gorgonia.Node
}

// Build adds the loss to the step.
func (c MomentumContrast) Build() Contrast {
	i2t := c.direction(c.Image, c.ImageM, Image, c.TextBank)
	t2i := c.direction(c.Text, c.TextM, Text, c.ImageBank)
	forI2T, forT2I := c.Positives.further(i2t.negatives, t2i.negatives)
	terms := append(gorgonia.Nodes{c.loss(i2t, forI2T), c.loss(t2i, forT2I)}, c.Terms...)
	return Contrast{Loss: Mean(terms...), I2T: i2t.negatives, T2I: t2i.negatives}
}

// direction is one direction of a contrast.
type direction struct {
	logits, teacher *gorgonia.Node // (B, columns)
	cols            *gorgonia.Node
	negatives       *gorgonia.Node // logits to draw negatives by
}

// direction returns the logits of features f of a modality, whose teacher is m, against a
// bank of the other one.
func (c MomentumContrast) direction(f, m *gorgonia.Node, from Modality, b *Bank) direction {
	logits := c.Score.Logits(b, f, from, c.Positives)
	if c.Weigh != nil {
		logits = arith.AddScaled(logits, b.Geodesic(m, c.WeighPaths, c.Positives), c.Weigh)
	}
	var teacher *gorgonia.Node
	if c.Alpha != nil {
		teacher = c.Target.Logits(b, m, from, c.Positives)
	}
	negatives := logits
	if n := c.Negatives; n != nil && n.Has(scoring.Geodesic) {
		negatives = n.Logits(b, m, from, c.Positives)
	} else if n != nil {
		negatives = n.Logits(b, f, from, c.Positives)
	}
	return direction{logits: logits, teacher: teacher, cols: b.Cols, negatives: b.Batch(negatives)}
}

// loss is the loss of one direction with further positives (B) int32, or nil.
func (c MomentumContrast) loss(d direction, further *gorgonia.Node) *gorgonia.Node {
	return contrast.CrossEntropy(contrast.CrossEntropyArgs{
		Logits: d.logits, Teacher: d.teacher, Alpha: c.Alpha, Cols: d.cols,
		Labels: c.Positives.Labels, RowIDs: c.Positives.RowIDs, ColIDs: c.Positives.ColIDs,
		Extra: further, Uniform: c.Positives.Uniform,
	})
}

// InBatchContrast is the symmetric contrast within a batch with gradient to both
// sides (Radford et al. 2021, figure 3), which lets a model without pretrained encoders start:
//
//	s = score(f_I, f_T) / tau,  L = (CE(s) + CE(s^T)) / 2
//
// for the logits s (B, B), where the score is the cosine there.
func InBatchContrast(i2t *gorgonia.Node, p Positives) Contrast {
	return inBatch(i2t, layout.Transpose(i2t), p)
}

// inBatch is InBatchContrast of the logits of both directions.
func inBatch(i2t, t2i *gorgonia.Node, p Positives) Contrast {
	loss := func(logits, further *gorgonia.Node) *gorgonia.Node {
		return contrast.CrossEntropy(contrast.CrossEntropyArgs{
			Logits: logits, Labels: p.Labels, RowIDs: p.RowIDs, ColIDs: p.ColIDs, Extra: further, Uniform: p.Uniform,
		})
	}
	forI2T, forT2I := p.further(i2t, t2i)
	return Contrast{
		Loss: Mean(loss(i2t, forI2T), loss(t2i, forT2I)),
		I2T:  i2t, T2I: t2i,
	}
}
