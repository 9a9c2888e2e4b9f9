package run

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
)

// TestCheckKeptBy: a number that compares checkpoints is looked for before the first step.
func TestCheckKeptBy(t *testing.T) {
	for _, c := range []struct {
		by, want string
		beside   []string
	}{
		{by: config.KeepByRerank},
		{by: "eval/retrieval/first/t2i_r1"},
		{by: "eval/retrieval/rerank/r_mean"},
		{by: "eval/retrieval/first/i2t_p5"},
		{by: "eval/retrieval/i2t_r1"},
		{by: "eval/retrieval/first/t2i_r2", want: "eval/retrieval/first/t2i_r1, "},
		{by: "eval/retreival/first/t2i_r1", want: "it has eval/retrieval/..."},
		{by: "eval/zeroshot/top1", want: "it has eval/retrieval/..."},
		{by: "eval/zeroshot/top1", beside: []string{TaskZeroShot}},
		{by: "eval/sts/stsb/spearman", beside: []string{TaskSentences}}, // whose names are those of files
	} {
		cfg := config.Default()
		cfg.Train.KeepBestBy, cfg.Eval.Beside = c.by, c.beside
		err := checkKeptBy(cfg, &Split{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "train.keep_best_by: names a number that the evaluation has not") || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %q: %v, want %q", c.by, c.beside, err, c.want)
		}
	}
}
