package config

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
)

// Parallel is what several processes, ranks, that train one model together do. Their number is the
// launcher's, as in mpirun -n 8, and is not a key: a run goes on with another one.
type Parallel struct {
	// with what a pair is compared: global (the pairs of all ranks, as on one) | local (those of its own rank)
	Contrast string `toml:"contrast"`
	// where hard negatives of matching come from: global | local (its own rank, as in ALBEF's published code)
	Negatives string `toml:"negatives" when:"ranks and contrast=global and objective.itm.weight>0"`
	// how gradients travel: fp32 | bf16 (half the bytes; sums are in float32)
	Wire string `toml:"wire"`
	// gradients that are summed at once, in MB
	BucketMB int `toml:"bucket_mb" max:"65536"`
	// a rank that is waited for longer ends the run on all
	TimeoutSeconds float64 `toml:"timeout_seconds" change:"harmless" max:"1000000"`
}

// Values of parallel.contrast and parallel.negatives.
const (
	OfAllRanks = "global"
	OfOwnRank  = "local"
)

// Defaults implements section.Defaulter.
func (p *Parallel) Defaults() {
	*p = Parallel{Contrast: OfAllRanks, Negatives: OfAllRanks, Wire: "fp32", BucketMB: 64, TimeoutSeconds: 300}
}

// Check implements section.Checked.
func (p *Parallel) Check(k *section.Checker) {
	k.OneOf("contrast", OfAllRanks, OfOwnRank)
	k.OneOf("negatives", OfAllRanks, OfOwnRank)
	k.OneOf("wire", "fp32", "bf16")
	k.Positive("bucket_mb", "timeout_seconds")
	p.checkRanks(k)
}

// LocalNegatives says whether hard negatives come from a process's own rows.
func (p *Parallel) LocalNegatives() bool { return p.Contrast == OfOwnRank || p.Negatives == OfOwnRank }

// checkRanks tells what several processes cannot train together.
func (p *Parallel) checkRanks(k *section.Checker) {
	c := section.Of[Config](k)
	if c.Ranks <= 1 {
		return
	}
	n, o := c.Ranks, c.Objective
	k.Training("train.batch_size", c.Train.BatchSize%n == 0,
		fmt.Sprintf("must be a multiple of the number of processes, %d", n),
		"it is the batch of all, of which each has an equal share")
	k.Training("model.system", !c.Has(section.Fitted), "cannot be trained by several processes",
		"it is fitted at once and has no steps: start one process")
	k.Training("train.accumulate", !c.AccumulatesFeatures(), `must be "gradients" with several processes`,
		"they compare the pairs of all as it is: raise train.batch_size instead")
	k.Training("train.batch_size", !p.LocalNegatives() || !o.ITM.On() || c.RankRows() >= 2,
		fmt.Sprintf("must be at least %d with %d processes", 2*n, n),
		`hard negatives are of a process's own rows: raise it, or set parallel.contrast and parallel.negatives = "global"`)
	k.Training("train.batch_size", p.Contrast != OfOwnRank || !c.Has(section.InBatch) || c.RankRows() >= 2,
		fmt.Sprintf("must be at least %d with %d processes", 2*n, n),
		`a pair is compared with those of its own process, and one alone teaches nothing: raise it, or set parallel.contrast = "global"`)
	k.Training("parallel.negatives", o.MAFA.Connector == "" || p.LocalNegatives(),
		`must be "local" with objective.mafa.connector and several processes`,
		"the connector sees the pairs of its own process")
	if g := c.Model.Image.ResNet.ShuffleGroups; c.Has(section.Convolutions) && g > 1 {
		k.Training("model.image.resnet.shuffle_groups", g%n == 0,
			fmt.Sprintf("must be a multiple of the number of processes, %d", n), "each has as many of the groups")
	}
}

// CheckRanks is what Validate says of c.Ranks processes.
func (c *Config) CheckRanks() error {
	k := section.NewChecker(c.View()).Enter("parallel")
	c.Parallel.checkRanks(k)
	return k.Errs.OrNil()
}

// ContrastRows returns the number of pairs that a pair is compared with: those of all processes, or of its own.
func (c *Config) ContrastRows() int {
	if c.Ranks > 1 && c.Parallel.Contrast == OfAllRanks {
		return c.Train.BatchSize
	}
	return c.ComparedRows()
}

// RankRows returns the rows of a micro-batch that each rank has: train.batch_size is that of all.
func (c *Config) RankRows() int { return c.Train.BatchSize / max(1, c.Ranks) }
