package run

import (
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/ablation"
)

// checkKeptBy refuses a train.keep_best_by that names no number of the evaluations of a run, so far as their names are
// known before the first of them: those of retrieval, and the tasks of others. It refuses one of which more is not
// better, as of ranks.
func checkKeptBy(cfg config.Config, set *Split) error {
	by := cfg.Train.KeepBestBy
	if !cfg.Train.KeepsByMetric() {
		return nil
	}
	refused := func(msg, hint string) error {
		return config.Errors{{Path: "train.keep_best_by", Value: by, Msg: msg, Hint: hint}}
	}
	const unknown = "names a number that the evaluation lacks"
	of := append([]string{DefaultTask(cfg)}, tasksBeside(cfg, set)...)
	i := slices.IndexFunc(of, func(task string) bool { return strings.HasPrefix(by, prefixOf(task)) })
	switch {
	case i < 0:
		var names []string
		for _, task := range of {
			names = append(names, prefixOf(task)+"...")
		}
		return refused(unknown, "it has "+strings.Join(names, ", "))
	default:
		t, _ := taskOf(cfg, of[i])
		if t.Numbers == nil {
			break
		}
		all := t.Numbers()
		if _, known := all[strings.TrimPrefix(by, t.Prefix())]; !known {
			var first []string
			for _, name := range slices.Sorted(maps.Keys(all)) {
				if strings.HasPrefix(name, eval.First+"/") {
					first = append(first, t.Prefix()+name)
				}
			}
			return refused(unknown, "it has "+strings.Join(first, ", ")+", and with re-ranking the same below "+
				t.Prefix()+eval.Reranked)
		}
	}
	switch ablation.Better(by) {
	case "lower":
		return refused("names a number of which less is better, and the checkpoints with the largest are kept",
			"name one of which more is")
	case "none":
		return refused("names a number that says of no checkpoint that it is better", "name a score")
	}
	return nil
}
