package config

// MAFA handles false negatives: a frozen model relabels the hardest negatives of matching.
type MAFA struct {
	Connector     string  `toml:"connector"`                       // checkpoint or run folder of the frozen model with a match head; empty: off
	PositiveAbove float64 `toml:"positive_above" read:"connector"` // a negative that the connector matches with more than this probability becomes a positive
	NegativeBelow float64 `toml:"negative_below" read:"connector"` // below this it stays a negative; in between the second hardest takes its place
	Uniform       float64 `toml:"uniform" read:"targets"`          // share of a uniform distribution in the targets of the contrast from the second epoch on
}

func (m *MAFA) defaults() { *m = MAFA{PositiveAbove: 0.8, NegativeBelow: 0.5} }

func (m *MAFA) check(k *checker, c *Config) {
	o := c.Objective
	k.Require("objective.mafa.positive_above", m.PositiveAbove >= 0 && m.PositiveAbove <= 1, "must be between 0 and 1")
	k.Require("objective.mafa.negative_below", m.NegativeBelow >= 0 && m.NegativeBelow <= m.PositiveAbove, "must be between 0 and objective.mafa.positive_above")
	k.BelowOne("objective.mafa.uniform")
	k.Require("objective.mafa.uniform", m.Uniform == 0 || o.ITC.Weight > 0 || o.ITC.InBatchWeight > 0,
		"needs objective.itc.weight or objective.itc.in_batch_weight > 0", "it is a part of the contrast's targets")
	k.Require("objective.mafa.connector", m.Connector == "" || o.ITM.Weight > 0, "needs objective.itm.weight > 0", "it relabels the negatives of matching")
}
