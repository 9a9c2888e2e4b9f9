package bench

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
)

// busy is r with workers that take a share of the processors' time.
func busy(r *DataReport, share float64) *DataReport {
	r.Step.Processor = share
	return r
}

func TestVerdicts(t *testing.T) {
	report := func(stage string, wait float64, cache string) *DataReport {
		return &DataReport{Processors: 2, Cache: cache, CacheGB: 1.5,
			Stages: []StageShare{{"text", 1, 0.1}, {stage, 9, 0.9}},
			Loader: []LoaderSpeed{{1, 100}, {2, 180}},
			Step:   &StepBeside{WaitShare: wait, Needed: 400}}
	}
	cfg := config.Default()
	for _, c := range []struct {
		r       *DataReport
		workers int
		want    []string
	}{
		{report("decode", 0.012, "none"), 0, []string{"waiting 1.2 % of the time: the step is the limit", "could use 400 samples/s", "up to 180"}},
		{report("decode", 0.5, "none"), 0, []string{"waiting 50.0 % of the time: data is the limit", "decode takes 90 % of a sample", `data.cache = "memory"`, "1.5 GB"}},
		{report("decode", 0.5, "none"), 1, []string{"set data.workers = 2"}},
		{report("decode", 0.5, "disk"), 0, []string{"data.cache_max_gb"}},
		{report("cache", 0.5, "disk"), 0, []string{`data.cache = "memory"`}},
		{report("resize", 0.5, "memory"), 0, []string{"data.cache_size"}},
		{report("augment", 0.5, "memory"), 0, []string{"data.randaugment_ops"}},
		{busy(report("decode", 0.01, "none"), 0.3), 1, []string{"waiting 1.0 % of the time, but making the samples takes 30.0 % of the processors", `data.cache = "memory"`}},
		{busy(report("decode", 0.01, "none"), 0.03), 1, []string{"the step is the limit"}},
		{report("draw", 0.5, "none"), 0, []string{"more processors"}},
	} {
		cfg.Data.Workers = c.workers
		got := c.r.verdict(cfg)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %q in it", got, want)
			}
		}
	}
	cfg.Data.Kind = "pairs"
	if got := report("read", 0.5, "none").verdict(cfg); strings.Contains(got, "data.cache") || !strings.Contains(got, "fast disk") {
		t.Errorf("got %q of stored features, which data.cache does not serve", got)
	}
}
