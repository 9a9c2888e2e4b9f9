package objectives

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// QueueContrast is the contrast of each side against the teacher's features of the other one (ViPMM, section 3.4 and
// algorithm 1; He et al. 2020, algorithm 1): of a text x_i, the teacher's feature y^m_i of its own image is the right answer,
// and the K images of the queue are the wrong ones,
//
//	L_t2v = mean_i -log( exp(x_i . y^m_i / tau) / (exp(x_i . y^m_i / tau) + sum_k exp(x_i . q_k / tau)) )
//
// and L_v2t likewise of an image against texts. So logits are (B, 1+K), where those of ITC have the teacher's features of the other
// pairs of the batch too, and tau is a constant. The loss is the sum of both. What the algorithm enqueues
// (it writes l_neg) are the teacher's features, and entries that were never filled take no part.
type QueueContrast struct {
	Weight      float64
	Temperature float64 // tau
}

// Build implements Loss.
func (l QueueContrast) Build(s *Step) []Part {
	needTeacher(s, "adcl")
	banks := s.Banks()
	Need(banks.Size > 0 && banks.Text != nil, "adcl", "needs the queue of both sides: set queue.size > 0, or objective.adcl.weight = 0")
	against := func(f, keys *gorgonia.Node, b *Bank) *gorgonia.Node {
		f = arith.Combine([]float32{float32(1 / l.Temperature)}, f)       // (B, C)
		own := layout.Reshape(similarity.RowProducts(f, keys), s.Rows, 1) // (B, 1)
		others := similarity.Similarity(f, b.Queue, nil, banks.Usable)    // (B, K)
		return contrast.CrossEntropy(contrast.CrossEntropyArgs{
			Logits: layout.ConcatColumns(own, others), Cols: layout.AddInt(banks.Usable, 1), // (B, 1+K)
			Labels: s.FixedInts("zeros", make([]int32, s.Rows)),
		})
	}
	return []Part{
		s.Part("adcl_t2v", l.Weight, against(s.Online.Text.Features, s.Teacher.Image.Features, banks.Image)),
		s.Part("adcl_v2t", l.Weight, against(s.Online.Image.Features, s.Teacher.Text.Features, banks.Text)),
	}
}
