package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// GSSF is the learned metric of GSSF: x^T (W o U) y for an image x and a text y, where W
// starts as the identity, which is the inner product. An option that the form has not is refused.
type GSSF struct {
	Form      string  `toml:"form" fixed:"model"`                                 // cosine (W is fixed) | diag (one weight for each channel) | block_diag (weights within blocks of channels) | dense (all) | sparse (all, those off the diagonal drawn to 0 by l1) | low_rank (W is a product of two matrices of rank rows) | mlp (a network of one hidden layer adds to the product of a pair; there is nothing to fold, so pairs are compared one by one)
	Blocks    int     `toml:"blocks" read:"block_diag" fixed:"model" max:"65536"` // of block_diag, a divisor of model.head.dim; 0: one for each sphere of the head, or of 16 channels on one sphere
	Start     string  `toml:"start" fixed:"run"`                                  // of diag, block_diag, dense and sparse: identity (so is empty) | random (uniform, of variance one over the weights of a row; GSSF's table of starts)
	Rank      int     `toml:"rank" fixed:"model" max:"65536"`                     // of low_rank, at most model.head.dim, with which it starts as the inner product; below it starts as that of the first rank channels; 0: a quarter of model.head.dim
	Symmetric bool    `toml:"symmetric" fixed:"model"`                            // of low_rank: both matrices are one, and W is symmetric and positive semidefinite
	Hidden    int     `toml:"hidden" fixed:"model" max:"65536"`                   // of mlp, units of the hidden layer; 0: a quarter of model.head.dim
	L1        float64 `toml:"l1" max:"1000000"`                                   // of sparse, weight of the sum of the absolute weights off the diagonal, as a proximal step after each update
	Decay     float64 `toml:"decay" max:"1000000"`                                // of diag, block_diag and dense, decoupled weight decay of W in the place of optimizer.decay; 0: none of its own
	DecayTo   string  `toml:"decay_to"`                                           // of decay, toward: identity (so is empty) | zero
	Dropout   float64 `toml:"dropout"`                                            // of dense, share of the weights that a training step leaves out
}

// DecayToIdentity is the default of objective.gssf.decay_to.
const DecayToIdentity = "identity"

// Values of objective.gssf.start.
const (
	StartIdentity = "identity"
	StartRandom   = "random"
)

func (g *GSSF) defaults() {
	*g = GSSF{Form: "block_diag", DecayTo: DecayToIdentity, Start: StartIdentity}
}

// LowRank returns the rank of low_rank for a head of so many channels.
func (g GSSF) LowRank(dim int) int { return cmp.Or(g.Rank, max(1, dim/4)) }

// Units returns the hidden units of mlp for a head of so many channels.
func (g GSSF) Units(dim int) int { return cmp.Or(g.Hidden, max(1, dim/4)) }

// check tells whether the form fits the head and has its options, only where a score reads them.
func (g *GSSF) check(k *checker, c *Config) {
	const form = "objective.gssf.form"
	dim := c.Model.Head.Dim
	k.OneOf(form, "cosine", "diag", "block_diag", "dense", "sparse", "low_rank", "mlp")
	k.OneOfOrEmpty("objective.gssf.decay_to", DecayToIdentity, "zero")
	k.OneOfOrEmpty("objective.gssf.start", StartIdentity, StartRandom)
	k.NotNegative("objective.gssf.blocks", "objective.gssf.rank", "objective.gssf.hidden", "objective.gssf.l1", "objective.gssf.decay")
	k.BelowOne("objective.gssf.dropout")
	if dim < 1 || !c.UsesMetric() {
		return
	}
	g.options(k)
	switch n := c.MetricBlocks(); g.Form {
	case "block_diag":
		k.Require("objective.gssf.blocks", n > 0 && dim%n == 0, fmt.Sprintf("must divide model.head.dim (%d)", dim), "choose a divisor: the blocks have one size")
	case "low_rank":
		k.Require("objective.gssf.rank", g.LowRank(dim) <= dim, fmt.Sprintf("must be at most model.head.dim (%d)", dim), "a full rank is objective.gssf.form = \"dense\"")
	case "sparse":
		k.Training("objective.gssf.l1", g.L1 > 0, `must be > 0 with objective.gssf.form "sparse"`, `without it the form is "dense"`)
	case "mlp":
		o := c.Objective
		k.Training(form, o.ITC.Weight == 0, `must not be "mlp" with objective.itc.weight > 0`, "it compares the pairs of a batch, not a batch with a queue: use objective.itc.in_batch_weight")
		k.Require(form, !c.Model.Interacts(), `must not be "mlp" with model.interaction`, "tokens are compared by products")
		k.Training(form, o.ITM.Weight == 0 || !hasKind(o.NegativeTerms(), ScoreGSSF), `must not be "mlp" with objective.itm.negatives = "gssf"`, `use "score"`)
	}
}

// options refuses those that another form has.
func (g *GSSF) options(k *checker) {
	for _, x := range []struct {
		path string
		set  bool
		of   []string
	}{
		{"objective.gssf.rank", g.Rank != 0, []string{"low_rank"}},
		{"objective.gssf.start", g.Start == StartRandom, []string{"diag", "block_diag", "dense", "sparse"}},
		{"objective.gssf.symmetric", g.Symmetric, []string{"low_rank"}},
		{"objective.gssf.hidden", g.Hidden != 0, []string{"mlp"}},
		{"objective.gssf.l1", g.L1 != 0, []string{"sparse"}},
		{"objective.gssf.decay", g.Decay != 0, []string{"diag", "block_diag", "dense"}},
		{"objective.gssf.dropout", g.Dropout != 0, []string{"dense"}},
	} {
		k.Require(x.path, !x.set || slices.Contains(x.of, g.Form), fmt.Sprintf("is not of objective.gssf.form %q", g.Form), "it is of "+strings.Join(x.of, ", "))
	}
	k.Require("objective.gssf.decay_to", g.DecayTo != "zero" || g.Decay > 0, "is not read with objective.gssf.decay = 0", "set it, or leave this one out")
}

// UsesMetric says whether a score reads the learned metric of objective.gssf.
func (c Config) UsesMetric() bool {
	return hasKind(c.Objective.usedTerms(), ScoreGSSF)
}

// trainMetric says how a run without a learned metric gets one, if it can.
func (c Config) trainMetric() string {
	with := c
	with.Objective.ITC.Score, with.Objective.ITC.Scores = ScoreGSSF, nil
	if !with.UsesMetric() {
		return `no loss of this run compares pairs by a score: use eval.score = "train"`
	}
	return `use objective.itc.score = "gssf", or give it a term in objective.itc.scores`
}

// MetricBlocks returns the number of blocks of the learned metric.
func (c Config) MetricBlocks() int {
	if n := c.Objective.GSSF.Blocks; n > 0 {
		return n
	}
	const channels = 16 // of a block on one sphere
	if space, err := c.Model.Head.Space(); err == nil && space.Spheres > 1 {
		return space.Spheres
	}
	return max(1, c.Model.Head.Dim/channels)
}
