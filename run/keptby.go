package run

import (
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
)

// checkKeptBy refuses a train.keep_best_by that names no number of the evaluations of a run, so far as their names are known before the
// first of them: those of retrieval, and the tasks of others.
func checkKeptBy(cfg config.Config, set *Split) error {
	by := cfg.Train.KeepBestBy
	if !cfg.Train.KeepsByMetric() {
		return nil
	}
	of := append([]string{DefaultTask(cfg)}, tasksBeside(cfg, set)...)
	refused := func(hint string) error {
		return config.Errors{{Path: "train.keep_best_by", Value: by, Msg: "names a number that the evaluation has not", Hint: hint}}
	}
	i := slices.IndexFunc(of, func(task string) bool { return strings.HasPrefix(by, logPrefix(task)) })
	switch {
	case i < 0:
		var names []string
		for _, task := range of {
			names = append(names, logPrefix(task)+"...")
		}
		return refused("it has " + strings.Join(names, ", "))
	case of[i] == TaskRetrieval:
		all := logged(Retrieval{Scores: tasks.Scores{Rerank: &eval.Metrics{}, Precision: &eval.Precision{}}})
		if _, known := all[by]; !known {
			first := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return !strings.HasPrefix(name, logPrefix(TaskRetrieval)+eval.First+"/") })
			return refused("it has " + strings.Join(first, ", ") + ", and with re-ranking the same below " + logPrefix(TaskRetrieval) + eval.Reranked)
		}
	}
	return nil
}
