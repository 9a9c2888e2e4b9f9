package objectives

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Matryoshka trains the leading channels of features as features of their own, so that what is stored and searched can
// be truncated.
//
// The total has each loss that compares features once more for each of dims ("Matryoshka Representation Learning",
// Kusupati et al. 2022, eq. 1, with the weights 1 of the paper),
//
//	L(f) + sum_d L(f_d),  f_d = (f_1, ..., f_d) / |(f_1, ..., f_d)|
//
// where parameters of the loss, such as a temperature, are the same. In a Euclidean space nothing is normalised; of
// several spheres f_d are the first ones, which are unit vectors as they are. Past features of a queue are truncated
// alike.
type Matryoshka struct {
	// leading channels that are features too, rising and below model.head.dim, such as [32, 64, 128]; on several spheres
	// multiples of the channels of one; empty: all channels alone
	Dims []int `toml:"dims" when:"leading" max:"65536"`
}

// Check implements section.Checked.
func (m *Matryoshka) Check(k *section.Checker) {
	if len(m.Dims) == 0 {
		return
	}
	s, err := headSpace(k)
	for i, d := range m.Dims {
		at := fmt.Sprintf("item %d ", i+1)
		if err == nil { // else a problem of the head
			_, err := s.Leading(d)
			k.Require("dims", err == nil, at+fmt.Sprint(err))
			k.Require("dims", d != s.Dim, at+"must be below model.head.dim", "all channels are always trained")
		}
		k.Require("dims", i == 0 || d > m.Dims[i-1], at+"must be larger than the one before")
	}
	k.Require("dims", k.Has(section.Features) || !k.Has(section.Captions), "must be empty with model.interaction.kind",
		"images and texts are compared by their tokens")
	k.Require("dims", !k.Has(section.Views), "must be empty", k.Named()+" compares no features of its own in use")
	terms := usedTerms(k.View)
	k.Require("dims", !terms.Has(scoring.GSSF), `must be empty with the score "gssf"`,
		"the learned metric is of all channels: use cosine, inner, l2 or angle")
	k.Require("dims", !terms.Has(scoring.Geodesic) && section.Of[Geodesic](k).Weigh == 0,
		`must be empty with the score "geodesic"`, "the graph over the queue is of all channels")
	tcl := section.Of[TCL](k)
	k.Require("dims", !tcl.Intra && !tcl.Local, "must be empty with objective.tcl", "it reads more than features")
	l := section.Of[SimCSE](k)
	k.Require("dims", !l.On() || l.Head != SentenceHeadTraining, `must be empty with objective.simcse.head "training"`,
		`the head is left out in evaluation, whose channels are others: use "always" or "none"`)
	k.Require("dims", !l.On() || err != nil || s.One(), "must be empty with objective.simcse.weight > 0",
		"sentences are compared on one sphere: choose model.head.topology sphere")
}

// truncated is the step as the losses over the first d channels of features see it, after it was built for all.
func (s *Step) truncated(d int) *Step {
	x := *s
	space, err := s.Scores.Space.Leading(d)
	Need(err == nil, "objective.matryoshka.dims", "%d: %v", d, err)
	x.Scores.Space, x.channels, x.whole, x.pairScores = space, d, nil, nil
	for _, sides := range []*Sides{&x.Online, &x.Teacher} {
		for _, side := range []*Side{&sides.Image, &sides.Text} {
			side.Features, side.View = x.leading(side.Features), x.leading(side.View)
		}
	}
	if s.banks != nil {
		banks := *s.banks
		banks.Image, banks.Text = x.leadingBank(banks.Image), x.leadingBank(banks.Text)
		x.banks = &banks
	}
	return &x
}

// leading returns the leading channels of features f (n, C) that the step has, as points of its space; f itself in the
// step of all, and nil of nil.
func (s *Step) leading(f *gorgonia.Node) *gorgonia.Node {
	if f == nil || s.channels == 0 {
		return f
	}
	return encoders.Projection{Space: s.Scores.Space}.Normalize(layout.Columns(f, 0, s.channels))
}

// leadingBank is a bank of leading channels.
func (s *Step) leadingBank(b *Bank) *Bank {
	if b == nil {
		return nil
	}
	x := *b
	x.Keys, x.Queue, x.Local = s.leading(b.Keys), s.leading(b.Queue), s.Scores.Space
	return &x
}
