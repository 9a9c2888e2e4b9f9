package objectives

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

// GSSF is the learned metric of GSSF: x^T (W o U) y for an image x and a text y, where W starts as the identity, which
// is the inner product. An option that the form has not is refused.
type GSSF struct {
	// cosine (W is fixed) | diag (one weight for each channel) | block_diag (weights within blocks of channels) | dense
	// (all) | sparse (all, those off the diagonal drawn to 0 by l1) | low_rank (W is a product of two matrices of rank
	// rows) | mlp (a network of one hidden layer adds to the product of a pair; there is nothing to fold, so pairs are
	// compared one by one)
	Form string `toml:"form" fixed:"model"`
	// of block_diag, a divisor of model.head.dim; 0: one for each sphere of the head, or of 16 channels on one sphere
	Blocks int `toml:"blocks" when:"form=block_diag" fixed:"model" max:"65536"`
	// of diag, block_diag, dense and sparse: identity (so is empty) | random (uniform, of variance one over the weights
	// of a row; GSSF's table of starts)
	Start string `toml:"start" fixed:"run"`
	// of low_rank, at most model.head.dim, with which it starts as the inner product; below it starts as that of the
	// first rank channels; 0: a quarter of model.head.dim
	Rank int `toml:"rank" fixed:"model" max:"65536"`
	// of low_rank: both matrices are one, and W is symmetric and positive semidefinite
	Symmetric bool `toml:"symmetric" fixed:"model"`
	// of mlp, units of the hidden layer; 0: a quarter of model.head.dim
	Hidden int `toml:"hidden" fixed:"model" max:"65536"`
	// of sparse, weight of the sum of the absolute weights off the diagonal, as a proximal step after each update
	L1 float64 `toml:"l1" max:"1000000"`
	// of diag, block_diag and dense, decoupled weight decay of W instead of optimizer.decay; 0: none of its own
	Decay float64 `toml:"decay" max:"1000000"`
	// of decay, toward: identity (so is empty) | zero
	DecayTo string `toml:"decay_to"`
	// of dense, share of the weights that a training step leaves out
	Dropout float64 `toml:"dropout"`
}

// Values of objective.gssf.start and decay_to.
const (
	startRandom     = "random"
	decayToIdentity = "identity"
	startIdentity   = decayToIdentity
)

// Defaults implements section.Defaulter.
func (g *GSSF) Defaults() {
	*g = GSSF{Form: encoders.MetricBlockDiag, DecayTo: decayToIdentity, Start: startIdentity}
}

// LowRank returns the rank of low_rank for a head of so many channels.
func (g *GSSF) LowRank(dim int) int { return cmp.Or(g.Rank, max(1, dim/4)) }

// Units returns the hidden units of mlp for a head of so many channels.
func (g *GSSF) Units(dim int) int { return cmp.Or(g.Hidden, max(1, dim/4)) }

// BlocksOf returns the number of blocks of a metric of features of a space: on one sphere each has 16 channels.
func (g *GSSF) BlocksOf(s space.Space) int {
	switch {
	case g.Blocks > 0:
		return g.Blocks
	case s.Spheres > 1:
		return s.Spheres
	}
	return max(1, s.Dim/16)
}

// Of returns the form of the metric of features of a space.
func (g *GSSF) Of(s space.Space) encoders.Metric {
	m := encoders.Metric{Form: g.Form, Blocks: g.BlocksOf(s), Dim: s.Dim, Symmetric: g.Symmetric, Dropout: g.Dropout,
		Random: g.Start == startRandom}
	switch m.Form {
	case encoders.MetricLowRank:
		m.Rank = g.LowRank(m.Dim)
	case encoders.MetricMLP:
		m.Hidden = g.Units(m.Dim)
	}
	if g.Decay > 0 || g.L1 > 0 {
		m.Pull = encoders.Pull{Decay: g.Decay, Identity: g.Decay > 0 && g.DecayTo != "zero", L1: g.L1}
	}
	return m
}

// Gives implements section.Giver.
func (g *GSSF) Gives() []section.Fact {
	if g.Dropout > 0 {
		return []section.Fact{section.Dropout}
	}
	return nil
}

// Derives implements section.Deriver.
func (g *GSSF) Derives(v *section.View) (list []section.Fact) {
	if v.Has(section.PairScores) {
		list = append(list, section.Score)
	}
	if usedTerms(v).Has(scoring.GSSF) {
		list = append(list, section.Metric)
	}
	return list
}

// Check implements section.Checked: whether the form fits the head and has its options is told only where a score reads
// them.
func (g *GSSF) Check(k *section.Checker) {
	k.OneOf("form", encoders.MetricCosine, encoders.MetricDiag, encoders.MetricBlockDiag, encoders.MetricDense,
		encoders.MetricSparse, encoders.MetricLowRank, encoders.MetricMLP)
	k.OneOfOrEmpty("decay_to", decayToIdentity, "zero")
	k.OneOfOrEmpty("start", startIdentity, startRandom)
	k.NotNegative("blocks", "rank", "hidden", "l1", "decay")
	k.BelowOne("dropout")
	dim := int(k.Number("model.head.dim"))
	if dim < 1 || !k.Has(section.Metric) {
		return
	}
	g.options(k)
	switch g.Form {
	case encoders.MetricBlockDiag:
		s, _ := headSpace(k)
		n := g.BlocksOf(s)
		k.Require("blocks", n > 0 && dim%n == 0, fmt.Sprintf("must divide model.head.dim (%d)", dim),
			"choose a divisor: the blocks have one size")
	case encoders.MetricLowRank:
		k.Require("rank", g.LowRank(dim) <= dim, fmt.Sprintf("must be at most model.head.dim (%d)", dim),
			"a full rank is objective.gssf.form = \"dense\"")
	case encoders.MetricSparse:
		k.Training("l1", g.L1 > 0, `must be > 0 with objective.gssf.form "sparse"`, `without it the form is "dense"`)
	case encoders.MetricMLP:
		k.Training("form", section.Of[ITC](k).Weight == 0, `must not be "mlp" with objective.itc.weight > 0`,
			"it compares the pairs of a batch, not a batch with a queue: use objective.itc.in_batch_weight")
		k.Require("form", k.Has(section.Features), `must not be "mlp" with model.interaction`,
			"tokens are compared by products")
		k.Training("form", !NegativeTerms(k).Has(scoring.GSSF),
			`must not be "mlp" with objective.itm.negatives = "gssf"`, `use "score"`)
	}
}

// options refuses those that another form has.
func (g *GSSF) options(k *section.Checker) {
	for _, x := range []struct {
		key string
		set bool
		of  []string
	}{
		{"rank", g.Rank != 0, []string{"low_rank"}},
		{"start", g.Start == startRandom, []string{"diag", "block_diag", "dense", "sparse"}},
		{"symmetric", g.Symmetric, []string{"low_rank"}},
		{"hidden", g.Hidden != 0, []string{"mlp"}},
		{"l1", g.L1 != 0, []string{"sparse"}},
		{"decay", g.Decay != 0, []string{"diag", "block_diag", "dense"}},
		{"dropout", g.Dropout != 0, []string{"dense"}},
	} {
		k.Require(x.key, !x.set || slices.Contains(x.of, g.Form),
			fmt.Sprintf("is not of objective.gssf.form %q", g.Form), "it is of "+strings.Join(x.of, ", "))
	}
	k.Require("decay_to", g.DecayTo != "zero" || g.Decay > 0, "is not read with objective.gssf.decay = 0",
		"set it, or leave this one out")
}
