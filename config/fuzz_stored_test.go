package config

import (
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// FuzzParseStored reads any text as the configuration of a run folder of any version.
func FuzzParseStored(f *testing.F) {
	f.Add("version = 1\n[data]\ntrain_files = [\"a\"]\nfile = 3\n[model.head]\nhidden = 7\n", "run.seed=1")
	f.Add("version = 99\n", "")
	f.Add("version = \"2\"\n[nothing]\nx = 1\n[train]\nbatch_size = -4\n", "train.batch_size=8")
	f.Add("[model.image]\nwidth = 7\nheads = 2\n", "=")
	f.Fuzz(func(t *testing.T, text, set string) {
		defer budgettest.WithinBytes(t, len(text)+len(set), 64<<20)() // the schema is made anew for each of several readings
		c, notices, err := ParseStored("config.toml", []byte(text), []string{set})
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		for _, n := range notices {
			if n == "" {
				t.Error("a notice without words")
			}
		}
		if err == nil {
			if _, err := c.Encode(); err != nil {
				t.Error(err)
			}
			Differences(c, Default())
			Conflicts(c, Default(), FixedRun)
		}
	})
}
