package config

import "fmt"

// Parallel is what several processes, ranks, that train one model together do. Their number is the
// launcher's, as in mpirun -n 8, and is no key: a run goes on with another one.
type Parallel struct {
	Contrast       string  `toml:"contrast"`                                        // with what a pair is compared: global (the pairs of all ranks, as on one) | local (those of its own rank)
	Negatives      string  `toml:"negatives" read:"hard negatives of ranks"`        // where hard negatives of matching come from: global | local (its own rank, as in ALBEF's published code)
	Wire           string  `toml:"wire"`                                            // how gradients travel: fp32 | bf16 (half the bytes; sums are in float32)
	BucketMB       int     `toml:"bucket_mb" max:"65536"`                           // gradients that are summed at once, in MB
	TimeoutSeconds float64 `toml:"timeout_seconds" change:"harmless" max:"1000000"` // a rank that is waited for longer ends the run on all
}

// Values of parallel.contrast and parallel.negatives.
const (
	OfAllRanks = "global"
	OfOwnRank  = "local"
)

func (p *Parallel) defaults() {
	*p = Parallel{Contrast: OfAllRanks, Negatives: OfAllRanks, Wire: "fp32", BucketMB: 64, TimeoutSeconds: 300}
}

func (p *Parallel) check(k *checker, c *Config) {
	k.oneOf("parallel.contrast", OfAllRanks, OfOwnRank)
	k.oneOf("parallel.negatives", OfAllRanks, OfOwnRank)
	k.oneOf("parallel.wire", "fp32", "bf16")
	k.positive("parallel.bucket_mb", "parallel.timeout_seconds")
	if n := c.Ranks; n > 1 {
		k.training("model.system", !c.Model.Fitted(), fmt.Sprintf("is fitted at once by one process, and there are %d", n), "start one, without a launcher such as mpirun")
		k.training("train.batch_size", c.Train.BatchSize%n == 0, fmt.Sprintf("must be a multiple of the number of processes, %d", n), "it is the batch of all of them, and each has an equal share of its rows")
	}
}

// RankRows returns the rows of a micro-batch that each rank has: train.batch_size is that of all.
func (c Config) RankRows() int { return c.Train.BatchSize / max(1, c.Ranks) }
