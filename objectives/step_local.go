package objectives

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/interaction"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// ReadLocal says that a loss reads features and tokens of both sides. It is for Prepare.
func (s *Step) ReadLocal() {
	for _, r := range []*Read{&s.Reads.Online.Image, &s.Reads.Online.Text} {
		r.Features, r.Tokens = true, true
	}
}

// localOf are the local features of a side for what name says: its tokens as the head maps them. With all, class
// tokens and what stands around a text take part.
func (s *Step) localOf(name string, x Side, all bool) encoders.Local {
	if x.own != nil {
		l := s.own.localOf(name, *x.own, all)
		l.Rows, l.Raw, l.All = s.own.Gather(l.Rows), s.own.Gather(l.Raw), true
		l.Lengths = s.own.Gather(l.Lengths)
		return l
	}
	head, ok := x.Head.(encoders.TokenHead)
	Need(ok && x.Tokens != nil, name, "needs towers of tokens, with a head that maps each of them")
	if n := s.Rows * x.Len; x.Tokens.Shape()[0] > n {
		x.Tokens = layout.StridedRows(x.Tokens, 0, 1, n) // masked captions come after them
	}
	return x.Local(head, head.Raw(x.Scope, x.Tokens), all)
}

// tokensOf are the words of texts or the patches of images as unit vectors of the shared space.
func (s *Step) tokensOf(name string, x Side) interaction.Tokens {
	l := s.localOf(name, x, false)
	return interaction.Tokens{Rows: s.unit(l.Rows), Lengths: l.Lengths, Len: l.Len, First: l.First}
}

// unit gives rows (R, C) of the shared space the length 1, which those of one sphere have.
func (s *Step) unit(rows *gorgonia.Node) *gorgonia.Node {
	if sp := s.Scores.Space; !sp.Euclid && sp.Groups() == 1 {
		return rows
	}
	return nn.L2Normalize(rows, 1e-12)
}
