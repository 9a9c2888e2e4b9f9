package config

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/encoders"
)

// TestRanks: what several processes cannot train together is refused, one process may do all of it.
func TestRanks(t *testing.T) {
	for name, x := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"share":    {func(c *Config) { c.Train.BatchSize = 63 }, "train.batch_size: must be a multiple of the number of processes, 4 (got 63); it is the batch of all"},
		"fit":      {func(c *Config) { c.Model.System = "align" }, `model.system: cannot be trained by several processes (got "align"); it is fitted at once`},
		"features": {func(c *Config) { c.Train.Accumulate, c.Train.AccumulateSteps = AccumulateFeatures, 2 }, `train.accumulate: must be "gradients" with several processes (got "features"); they compare the pairs of all as it is`},
		"one row":  {func(c *Config) { c.Train.BatchSize, c.Parallel.Negatives = 4, OfOwnRank }, "train.batch_size: must be at least 8 with 4 processes (got 4); hard negatives are of a process's own rows"},
		"alone": {func(c *Config) {
			c.Train.BatchSize, c.Parallel.Contrast, c.Objective.ITC.InBatchWeight, c.Objective.ITM.Weight = 4, OfOwnRank, 1, 0
		}, "train.batch_size: must be at least 8 with 4 processes (got 4); a pair is compared with those of its own process"},
		"judge": {func(c *Config) { c.Objective.MAFA.Connector = "runs/x" }, `parallel.negatives: must be "local" with objective.mafa.connector and several processes (got "global"); the connector sees the pairs of its own process`},
		"groups": {func(c *Config) {
			c.Model.Image.Style, c.Model.Image.ResNet = "resnet", encoders.ResNet{Depth: 18, Width: 8, ShuffleGroups: 2, TeacherNorm: "batch"}
		},
			"model.image.resnet.shuffle_groups: must be a multiple of the number of processes, 4 (got 2); each has as many of the groups"},
	} {
		c := Default()
		x.change(&c)
		if err := c.CheckRanks(); err != nil {
			t.Errorf("%s: one process is refused: %v", name, err)
		}
		c.Ranks = 4
		if err := c.CheckRanks(); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %s", name, err, x.want)
		}
		if err := c.Validate(); name == "share" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: Validate says %v, want %s", name, err, x.want)
		}
		if c.Parallel.Contrast = OfOwnRank; name == "judge" && c.CheckRanks() != nil {
			t.Errorf("a connector with local comparisons: %v", c.CheckRanks())
		}
	}
	c := Default()
	c.Ranks = 4
	if err := c.CheckRanks(); err != nil {
		t.Error(err)
	}
	if a, b := c.RankRows(), c.ContrastRows(); a != c.Train.BatchSize/4 || b != c.Train.BatchSize {
		t.Errorf("a process has %d rows and compares %d", a, b)
	}
	c.Parallel.Contrast = OfOwnRank
	if n := c.ContrastRows(); n != c.Train.BatchSize/4 {
		t.Errorf("with local comparisons a process compares %d", n)
	}
}
