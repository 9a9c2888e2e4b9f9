package run

import (
	"testing"

	"github.com/geoalign/geoalign/config"
	pages "github.com/geoalign/geoalign/report"
)

// The head of the page names the best evaluation by the ranking that compares checkpoints;
// of logs of earlier versions that is the last one.
func TestBestEvaluation(t *testing.T) {
	log := func(curves map[string][]float64) *pages.Curves {
		c := &pages.Curves{Values: map[string][]pages.Point{}}
		for name, values := range curves {
			for i, v := range values {
				c.Values["eval/"+name] = append(c.Values["eval/"+name], pages.Point{Step: float64(i+1) * 1000, Value: v})
			}
		}
		return c
	}
	old := log(map[string][]float64{"retrieval/r_mean": {30, 50, 40}})
	both := log(map[string][]float64{"retrieval/r_mean": {30, 50, 40}, "retrieval/rerank/r_mean": {30, 50, 40}, "retrieval/first/r_mean": {60, 45, 20}})
	for _, c := range []struct {
		curves           *pages.Curves
		system, by, want string
	}{
		{old, "albef", config.KeepByBetter, "mean recall 50.0 % at step 2,000"},
		{both, "albef", config.KeepByBetter, "mean recall by the pair score 60.0 % at step 1,000"},
		{both, "albef", config.KeepByFirst, "mean recall by the pair score 60.0 % at step 1,000"},
		{both, "albef", config.KeepByRerank, "mean recall, re-ranked 50.0 % at step 2,000"},
		{log(map[string][]float64{"retrieval/first/r_mean": {7}}), "clip", config.KeepByRerank, "mean recall by the pair score 7.0 % at step 1,000"},
		{log(map[string][]float64{"probe/top1": {7, 9}}), "moco", config.KeepByBetter, "linear probe 9.0 % at step 2,000"},
		{log(nil), "albef", config.KeepByBetter, ""},
	} {
		cfg := config.Default()
		cfg.Model.System, cfg.Train.KeepBestBy = c.system, c.by
		if got := bestEvaluation(c.curves, cfg); got != c.want {
			t.Errorf("%s by %s: %q, want %q", c.system, c.by, got, c.want)
		}
	}
}
