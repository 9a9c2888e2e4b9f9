package objectives

import (
	"math"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

var (
	_ Preparer = ITC{}
	_ Preparer = InBatch{}
)

// ITC is the contrast of both sides against the teacher's features and the queue
// (MomentumContrast) as a loss.
type ITC struct {
	Weight        float64
	Score, Target Terms   // of the student, and behind the teacher's soft targets
	Weigh         float64 // logits are lowered by this times the teacher's geodesic score; 0: off
	TCL           TCL
}

// TCL adds the terms of triple contrastive learning (Yang et al. 2022) to the contrast,
// whose loss is then the mean of all terms.
type TCL struct {
	Intra bool // the contrast within each modality
	Local bool // parts of a sample against the whole
	Grid  int  // an image has grid x grid parts
}

// Prepare implements Preparer.
func (l ITC) Prepare(s *Step) {
	if l.TCL.Local {
		s.Reads.Teacher.Image.Tokens, s.Reads.Teacher.Text.Tokens = true, true
	}
}

// Build implements Loss.
func (l ITC) Build(s *Step) []Part {
	needTeacher(s, "itc")
	banks := s.Banks()
	c := MomentumContrast{
		Image: s.Online.Image.Features, Text: s.Online.Text.Features,
		ImageM: s.Teacher.Image.Features, TextM: s.Teacher.Text.Features,
		ImageBank: banks.Image, TextBank: banks.Text, Alpha: s.Alpha(), Positives: s.targets(banks.Positives, banks.Own),
		Score:      s.Scores.Score(l.Score, false),
		Target:     s.Scores.Score(l.Target, true),
		WeighPaths: s.Scores.Paths,
	}
	if s.NegativeTerms != nil {
		by := s.Scores.Score(s.NegativeTerms, false)
		c.Negatives = &by
	}
	if l.Weigh > 0 {
		c.Weigh = s.Floats("weight of the teacher's scores", func(_ *feed.Step, dst []float32) error {
			if dst[0] = 0; banks.GraphActive() {
				dst[0] = -float32(l.Weigh)
			}
			return nil
		})
	}
	parts := l.TCL.parts(s, c)
	for _, p := range parts {
		c.Terms = append(c.Terms, p.Node)
	}
	built := c.Build()
	s.offer(built)
	return append(parts, s.Part("itc", l.Weight, built.Loss))
}

// InBatch is the contrast within the batch with gradient to both sides (InBatchContrast)
// as a loss. Its score is the step's PairTerms.
type InBatch struct{ Weight float64 }

// Prepare implements Preparer.
func (l InBatch) Prepare(s *Step) {
	s.ReadPairs()
}

// Build implements Loss.
func (l InBatch) Build(s *Step) []Part {
	p := s.Part("itc_in_batch", l.Weight, s.within().Loss)
	p.Chance = math.Log(float64(s.All()))
	return []Part{p}
}

// parts returns the terms that triple contrastive learning adds to a contrast. They are
// part of its loss, so that here they are measures.
func (t TCL) parts(s *Step, c MomentumContrast) (parts []Part) {
	add := func(name string, n *gorgonia.Node) { parts = append(parts, Part{Name: name, Node: n, Measure: true}) }
	if t.Intra {
		i2i, t2t := c.Intra()
		add("itc_i2i", i2i)
		add("itc_t2t", t2t)
	}
	if t.Local {
		add("itc_local_image", t.localImage(s))
		add("itc_local_text", t.localText(s))
	}
	return parts
}

// rowProjector is a head that can project every token of a sequence like a class token.
type rowProjector interface {
	Rows(s encoders.Scope, x *gorgonia.Node) *gorgonia.Node
}

// rowsOf projects every token of a side.
func rowsOf(x Side, tokens *gorgonia.Node) *gorgonia.Node {
	head, ok := x.Head.(rowProjector)
	Need(ok && x.Len > 1, "itc_local", "needs towers of several tokens with a linear head: set objective.tcl.local = false")
	return head.Rows(x.Scope, tokens)
}

// directions returns rows (R, C) as a loss compares them that does so by their cosine: those of a
// Euclidean space have any length, and all others are unit vectors on their spheres already.
func directions(s *Step, rows *gorgonia.Node) *gorgonia.Node {
	if s.Scores.Space.Euclid {
		return nn.L2Normalize(rows, 1e-12)
	}
	return rows
}

// localImage is the contrast of an image with its grid x grid parts, the means of the
// teacher's projected patches.
func (t TCL) localImage(s *Step) *gorgonia.Node {
	side := s.Teacher.Image
	n := side.Len - side.Begin // patches, behind class tokens and registers
	edge := int(math.Sqrt(float64(n)))
	Need(edge*edge == n && side.Lengths == nil, "itc_local", "reads a square of patches, and the image tower gives %d tokens of another kind: set objective.tcl.local = false", n)
	patches := directions(s, rowsOf(side, side.Tokens)) // (B*T, C)
	all := s.Whole()
	return Local{
		Whole: directions(s, all.Online.Image.Features),
		Parts: s.Gather(contrast.PoolPatches(patches, side.Len, edge, t.Grid)), // (N*grid*grid, C)
		IDs:   all.IDs, Temperature: s.Scores.Divisor(),
	}.Build()
}

// localText is the contrast of a caption with its tokens, what begins a text, such as [CLS], left out.
func (t TCL) localText(s *Step) *gorgonia.Node {
	side := s.Teacher.Text
	states := side.Tokens
	if n := s.Rows * side.Len; states.Shape()[0] > n {
		states = layout.StridedRows(states, 0, 1, n) // masked captions come after them
	}
	all := s.Whole()
	return Local{
		Whole: directions(s, all.Online.Text.Features), Parts: s.Gather(directions(s, rowsOf(side, states))), // (N*L, C)
		Lengths: s.Gather(side.Lengths), First: side.Begin, IDs: all.IDs, Temperature: s.Scores.Divisor(),
	}.Build()
}
