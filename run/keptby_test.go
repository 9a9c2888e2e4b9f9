package run

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/tasks/sentiment"
	"github.com/geoalign/geoalign/tasks/zeroshot"
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
		{by: "eval/zeroshot/top1", beside: []string{zeroshot.Name}},
		{by: "eval/retrieval/first/i2t_mean_rank", want: "of which less is better"},
		{by: "eval/retrieval/rerank/t2i_median_rank", want: "of which less is better"},
		{by: "eval/isotropy/stsb/mean_cosine", beside: []string{sentences.Name}, want: "of which less is better"},
		{by: "eval/isotropy/stsb/isoscore", beside: []string{sentences.Name}},
		{by: "eval/sentiment/mae", beside: []string{sentiment.Name}, want: "of which less is better"},
		{by: "eval/probe/decay", beside: []string{probe.Name}, want: "of no checkpoint that it is better"},
		{by: "eval/probe/top1", beside: []string{probe.Name}},
		{by: "eval/sts/stsb/spearman", beside: []string{sentences.Name}}, // whose names are those of files
	} {
		cfg := config.Default()
		cfg.Train.KeepBestBy, cfg.Eval.Beside = c.by, c.beside
		err := checkKeptBy(cfg, &Split{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "train.keep_best_by: names a number ") || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %q: %v, want %q", c.by, c.beside, err, c.want)
		}
	}
}
