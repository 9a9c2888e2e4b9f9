package objectives

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/interaction"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// ofTokens is what a loss over the features and tokens of both sides within the batch embeds.
type ofTokens struct{}

// Needs implements section.Needer.
func (ofTokens) Needs() []section.Fact {
	return []section.Fact{section.Captions, section.Words, section.Tokens}
}

// Gives implements section.Giver.
func (ofTokens) Gives() []section.Fact {
	return []section.Fact{section.States, section.AllPatches, section.BatchImages}
}

// checkTokens checks the weight of a loss over the tokens of images and texts within a batch.
func checkTokens(k *section.Checker, l section.Switched) {
	if !l.On() {
		return
	}
	space, err := headSpace(k)
	k.Require("weight", err != nil || !space.Tokens, "must be 0 with model.head.topology = \"Multi(n,m)\"",
		"a word or a patch is one token and has no m spheres")
	frozen := k.Value("model.image.freeze") == true || k.Value("model.text.freeze") == true
	k.Training("weight", k.Value("data.cache_features") == false || !frozen,
		"must be 0 with data.cache_features and a frozen tower", "tokens are not kept")
	k.Training("train.batch_size", k.Number("train.batch_size") >= 2,
		"must be at least 2 with "+k.Path("weight")+" > 0", "a pair is told from others of its batch")
}

// Prepare implements Preparer.
func (ofTokens) Prepare(s *Step) {
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
