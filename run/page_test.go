package run

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
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
		{log(map[string][]float64{"classification/top1": {7, 9}, "probe/top1": {70}}), "classes", config.KeepByBetter, "top-1 9.0 % at step 2,000"},
		{log(map[string][]float64{"isotropy/stsb/isoscore": {0.0125, 0.002}}), "albef", "eval/isotropy/stsb/isoscore", "isotropy/stsb/isoscore 0.0125 at step 1,000"},
	} {
		cfg := config.Default()
		cfg.Model.System, cfg.Train.KeepBestBy = c.system, c.by
		if got := bestEvaluation(c.curves, cfg); got != c.want {
			t.Errorf("%s by %s: %q, want %q", c.system, c.by, got, c.want)
		}
	}
}

// Every task that a model is fine-tuned for has its best evaluation at the head of the page, under the name by which checkpoints are kept.
func TestKeptMetricsOfTasks(t *testing.T) {
	for kind, s := range map[string]Scores{
		config.EntailmentKind: JudgedExamples{Of: TaskEntailment}, config.NLVRKind: JudgedExamples{Of: TaskNLVR}, source.VQAKind: Answered{}, source.GroundingKind: Grounding{},
	} {
		cfg := config.Default()
		cfg.Data.Kind = kind
		if got := keptMetrics(&pages.Curves{}, cfg); len(got) != 1 || got[0].key != s.Metric().Name {
			t.Errorf("%s: %v, want %s", kind, got, s.Metric().Name)
		}
	}
	cfg := config.Default()
	cfg.Objective.Captioning.Weight, cfg.Objective.Captioning.Decoder = 1, "transformer"
	if got := keptMetrics(&pages.Curves{}, cfg); got[0].key != (Captioned{}).Metric().Name {
		t.Errorf("captions: %v", got)
	}
}

// The chance level of a contrast is that of the pairs that it compares: of all micro-batches, and not known with a queue.
func TestPageKnowsChance(t *testing.T) {
	cfg := config.Default()
	cfg.Train.BatchSize, cfg.Train.AccumulateSteps, cfg.Queue.Size = 8, 3, 64
	for accumulate, want := range map[string]int{config.AccumulateGradients: 8, config.AccumulateFeatures: 24} {
		cfg.Train.Accumulate = accumulate
		var d pages.Data
		if Describe(&d, cfg); d.Batch != want || !d.Queued {
			t.Errorf("%s: %d pairs, with a queue: %v, want %d", accumulate, d.Batch, d.Queued, want)
		}
	}
}

// TestPageNamesTheFolder of the data, where it has a name.
func TestPageNamesTheFolder(t *testing.T) {
	for root, want := range map[string]string{"": "pairs", ".": "pairs", "./": "pairs", "photos": "pairs, photos", "/data/coco/": "pairs, coco"} {
		cfg := config.Default()
		cfg.Data.Kind, cfg.Data.Root = "pairs", root
		var d pages.Data
		if Describe(&d, cfg); !slices.Contains(d.Facts, pages.Fact{Name: "data", Value: want}) {
			t.Errorf("data.root %q: %v, want %q", root, d.Facts, want)
		}
	}
}

// A fit has no steps of a batch.
func TestPageOfAFit(t *testing.T) {
	for system, want := range map[string]bool{"albef": true, "align": false} {
		cfg := config.Default()
		cfg.Model.System = system
		d := pages.Data{Curves: &pages.Curves{Rows: 1, Last: 1}}
		Describe(&d, cfg)
		if got := slices.ContainsFunc(d.Facts, func(f pages.Fact) bool { return f.Name == "samples" }); got != want {
			t.Errorf("%s has a number of samples: %v", system, got)
		}
	}
}
