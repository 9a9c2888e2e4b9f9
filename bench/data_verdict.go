package bench

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/words"
)

// Shares below which data does not matter: of the step, waiting for it; of the
// processors' time, making it.
const (
	littleWait = 0.05
	littleWork = 0.05
)

// verdict says in a sentence what the limit is and what would move it.
func (r *DataReport) verdict(cfg config.Config) string {
	most := slices.MaxFunc(r.Stages, func(a, b StageShare) int { return cmp.Compare(a.MS, b.MS) })
	best := slices.MaxFunc(r.Loader, func(a, b LoaderSpeed) int { return cmp.Compare(a.Samples, b.Samples) })
	stage := fmt.Sprintf("%s takes %.0f %% of a sample", most.Stage, 100*most.Share)
	if r.Step == nil {
		return fmt.Sprintf("the loader makes up to %s samples/s with %s; %s", rate(best.Samples),
			words.Count(best.Workers, "worker"), stage)
	}
	s := r.Step
	speeds := fmt.Sprintf("the step could use %s samples/s, the loader alone makes up to %s", rate(s.Needed),
		rate(best.Samples))
	switch {
	case s.WaitShare >= littleWait:
		return fmt.Sprintf("waiting %.1f %% of the time: data is the limit (%s); %s: %s",
			100*s.WaitShare, speeds, stage, r.advice(cfg, most.Stage, best.Workers))
	case s.Processor >= littleWork:
		// More workers would not help: they and the step share the processors.
		return fmt.Sprintf("waiting %.1f %% of the time, but making the samples takes %.1f %% of the processors' time from the step (%s); %s: %s",
			100*s.WaitShare, 100*s.Processor, speeds, stage, r.advice(cfg, most.Stage, 0))
	}
	return fmt.Sprintf("waiting %.1f %% of the time: the step is the limit (%s)", 100*s.WaitShare, speeds)
}

// rate prints samples per second.
func rate(v float64) string {
	if v < 20 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// advice says what to try when data is the limit.
func (r *DataReport) advice(cfg config.Config, stage string, bestWorkers int) string {
	workers := cfg.Data.Workers
	if workers == 0 {
		workers = r.Processors
	}
	switch {
	case workers < bestWorkers:
		return fmt.Sprintf("set data.workers = %d", bestWorkers)
	// mapped files, which no cache serves
	case cfg.Data.Kind == "pairs", cfg.Data.Kind == "regions" && !cfg.Data.Drawn():
		return "keep the files on a fast disk or in free memory, or store them as float16 (<f2, F16)"
	case stage == "read" || stage == "decode" || stage == "colour":
		if r.Cache != "none" {
			return "the cache is not filled yet, or too small: see data.cache_max_gb, and --samples for a filled one"
		}
		return fmt.Sprintf("set data.cache = \"memory\" or \"disk\" (all images take %.1f GB, less with data.cache_size)", r.CacheGB)
	case stage == "cache":
		return "set data.cache = \"memory\", or a smaller data.cache_size"
	case stage == "resize":
		return "shrink the images, by data.cache with data.cache_size or on disk"
	case stage == "augment":
		return "lower data.randaugment_ops"
	}
	return "use more processors"
}
