package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// TestBestByTheNewestRule: the best checkpoints are those by the train.keep_best_by that the run ended with.
func TestBestByTheNewestRule(t *testing.T) {
	dir := t.TempDir()
	snap, err := checkpoint.Take(nil)
	if err != nil {
		t.Fatal(err)
	}
	for step, by := range []string{"better", "eval/sts/stsb/spearman", "eval/sts/stsb/spearman"} {
		s, err := checkpoint.NewStore(filepath.Join(dir, runlog.CheckpointsDir), checkpoint.Retention{BestBy: by})
		if err != nil {
			t.Fatal(err)
		}
		snap.Metric = &checkpoint.Metric{Value: float64(9 - step)}
		if err := s.Save(step, snap); err != nil {
			t.Fatal(err)
		}
	}
	list, err := chosen(dir, AverageOptions{Best: 2})
	if err != nil || len(list) != 2 || list[0].Step != 1 || list[1].Step != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := chosen(dir, AverageOptions{Best: 3}); err == nil {
		t.Error("a checkpoint by another rule is one of the best")
	}
}

// A run that was stopped before its first checkpoint is a run all the same.
func TestAverageOfARunThatBegins(t *testing.T) {
	dir := t.TempDir()
	if _, err := checkpoint.NewStore(filepath.Join(dir, runlog.CheckpointsDir), checkpoint.Retention{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chosen(dir, AverageOptions{Last: 2}); err == nil || !strings.Contains(err.Error(), "has no checkpoint so far") {
		t.Errorf("got %v", err)
	}
}

// TestAverageAfterGoingBack: checkpoints that a run left which went on from an older step are none of its newest, nor of its best.
func TestAverageAfterGoingBack(t *testing.T) {
	dir := t.TempDir()
	snap, err := checkpoint.Take(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.NewStore(filepath.Join(dir, runlog.CheckpointsDir), checkpoint.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{2, 4, 6, 3} {
		snap.Metric = &checkpoint.Metric{Value: float64(step)}
		if err := s.Save(step, snap); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []AverageOptions{{Last: 2}, {Best: 2}} {
		if list, err := chosen(dir, o); err != nil || len(list) != 2 || list[0].Step != 2 || list[1].Step != 3 {
			t.Errorf("%+v: %+v, %v", o, list, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, runlog.CheckpointsDir, "step-00000003", "state.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if list, err := chosen(dir, AverageOptions{Last: 2}); err == nil || !strings.Contains(err.Error(), "a mean without it would be another one") {
		t.Errorf("of a run whose newest is damaged: %+v, %v", list, err)
	}
}
