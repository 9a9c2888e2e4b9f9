package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// TestPageParts: a part of a page is read back, a damaged one is named with its cure, and none is none.
func TestPageParts(t *testing.T) {
	dir := t.TempDir()
	if s, err := readSentences(dir); s != nil || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if list, err := readClasses(dir); list != nil || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	path := filepath.Join(dir, runlog.SentencesFile)
	check.OK(t, writePart(path, pages.Sentences{Step: 7}))
	if s, err := readSentences(dir); err != nil || s.Step != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	for name, text := range map[string]string{runlog.SentencesFile: "{", runlog.ClassesFile: "[{}]"} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	check.Fails(readSentences(dir))(t, path, "remove it to draw the page without")
	check.Fails(readClasses(dir))(t, "a task has no table: remove it")
}

// TestKeepByMetric: checkpoints are kept by any number of the evaluations, and a number that there is none of is refused.
func TestKeepByMetric(t *testing.T) {
	cfg := config.Default()
	r := &Run{cfg: cfg, scores: probe.Scores{}, beside: []Scores{sentences.Scores{Tasks: []sentences.PairScores{{Task: "sts12", STS: &eval.STS{Parts: []eval.STSPart{{Name: "x", Correlation: eval.Correlation{Spearman: .5}}, {}}}}, {Task: "stsb", STS: &eval.STS{}}}}}}
	r.cfg.Train.KeepBestBy = "eval/sts/sts12/x/spearman"
	if m, err := r.metric(); err != nil || m != (checkpoint.Metric{Name: "eval/sts/sts12/x/spearman", Value: 50}) {
		t.Errorf("%+v, %v", m, err)
	}
	r.cfg.Train.KeepBestBy = "eval/sts/stsb/kendall"
	if _, err := r.metric(); err == nil || !strings.Contains(err.Error(), "train.keep_best_by: names a number that the evaluation lacks") || !strings.Contains(err.Error(), "eval/sts/stsb/spearman") {
		t.Error(err)
	}
	r.cfg.Train.KeepBestBy = config.KeepByBetter
	if m, err := r.metric(); err != nil || m.Name != "eval/probe/top1" {
		t.Errorf("%+v, %v", m, err)
	}
}
