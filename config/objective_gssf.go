package config

import "fmt"

// GSSF is the learned metric of GSSF: x^T (W o U) y for an image x and a text y, where W
// starts as the identity, which is the inner product.
type GSSF struct {
	Form   string `toml:"form" fixed:"model"`                                 // cosine (W is fixed) | diag (one weight for each channel) | block_diag (weights within blocks of channels) | dense
	Blocks int    `toml:"blocks" read:"block_diag" fixed:"model" max:"65536"` // of block_diag, a divisor of model.head.dim; 0: one for each sphere of the head, or of 16 channels on one sphere
}

func (g *GSSF) defaults() { *g = GSSF{Form: "block_diag"} }

// check tells whether the blocks fit the head, only where a score reads them.
func (g *GSSF) check(k *checker, c *Config) {
	dim := c.Model.Head.Dim
	k.oneOf("objective.gssf.form", "cosine", "diag", "block_diag", "dense")
	k.notNegative("objective.gssf.blocks")
	if g.Form != "block_diag" || dim < 1 || !c.UsesMetric() {
		return
	}
	n := c.MetricBlocks()
	k.require("objective.gssf.blocks", n > 0 && dim%n == 0, fmt.Sprintf("must divide model.head.dim (%d)", dim), "choose a divisor: the blocks have one size")
}

// UsesMetric says whether a score reads the learned metric of objective.gssf.
func (c Config) UsesMetric() bool {
	return hasKind(c.Objective.usedTerms(), ScoreGSSF)
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
