package convert

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/weights"
)

// TestBestByTheNewestRule: the best checkpoints are those by the train.keep_best_by that the run ended with.
func TestBestByTheNewestRule(t *testing.T) {
	dir := t.TempDir()
	snap := check.Get(checkpoint.Take(nil))(t)
	for step, by := range []string{"better", "eval/sts/stsb/spearman", "eval/sts/stsb/spearman"} {
		s, err := checkpoint.NewStore(filepath.Join(dir, runlog.CheckpointsDir), checkpoint.Retention{BestBy: by})
		if err != nil {
			t.Fatal(err)
		}
		snap.Metric = &checkpoint.Metric{Value: float64(9 - step)}
		check.OK(t, s.Save(step, snap))
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
	check.Get(checkpoint.NewStore(filepath.Join(dir, runlog.CheckpointsDir), checkpoint.Retention{}))(t)
	check.Fails(chosen(dir, AverageOptions{Last: 2}))(t, "has no checkpoint so far")
}

// TestAverageAfterGoingBack: checkpoints that a run left which went on from an older step are none of its newest, nor
// of its best.
func TestAverageAfterGoingBack(t *testing.T) {
	dir := t.TempDir()
	snap := check.Get(checkpoint.Take(nil))(t)
	s := check.Get(checkpoint.NewStore(filepath.Join(dir, runlog.CheckpointsDir), checkpoint.Retention{}))(t)
	for _, step := range []int{2, 4, 6, 3} {
		snap.Metric = &checkpoint.Metric{Value: float64(step)}
		check.OK(t, s.Save(step, snap))
	}
	for _, o := range []AverageOptions{{Last: 2}, {Best: 2}} {
		if list, err := chosen(dir, o); err != nil || len(list) != 2 || list[0].Step != 2 || list[1].Step != 3 {
			t.Errorf("%+v: %+v, %v", o, list, err)
		}
	}
	filetest.Write(t, filepath.Join(dir, runlog.CheckpointsDir, "step-00000003", "state.json"), "{")
	if list, err := chosen(dir, AverageOptions{Last: 2}); err == nil || !strings.Contains(err.Error(), "a mean without it would be another one") {
		t.Errorf("of a run whose newest is damaged: %+v, %v", list, err)
	}
}

// TestMeanKeepsWhatAllHave: parameters that training did not change keep their bits, as those of a frozen tower must,
// and others have their mean.
func TestMeanKeepsWhatAllHave(t *testing.T) {
	const values = 500
	r := rand.New(rand.NewPCG(5, 1))
	draw := func() []float32 {
		x := make([]float32, values)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	for _, count := range []int{1, 2, 3, 5, 7, 10} {
		frozen, sum := draw(), make([]float64, values)
		list := []state.Tensor{{Name: "frozen", Shape: []int{values}, Data: make([]float32, values)}, {Name: "trained", Shape: []int{values}, Data: make([]float32, values)}}
		for n := range count {
			trained := draw()
			for i, v := range trained {
				sum[i] += float64(v)
			}
			of := func(name string, x []float32) weights.Param {
				return weights.Param{Name: name, Shape: []int{values}, Read: func(dst []float32) error { copy(dst, x); return nil }}
			}
			check.OK(t, mean(list, []weights.Param{of("frozen", frozen), of("trained", trained)}, n+1, ""))
		}
		if !slices.Equal(list[0].Data.([]float32), frozen) {
			t.Errorf("the mean of %d equal parameters is another one", count)
		}
		for i, v := range list[1].Data.([]float32) {
			if want := sum[i] / float64(count); !(math.Abs(float64(v)-want) <= 1e-6) {
				t.Fatalf("the mean of %d numbers is %v, want %v", count, v, want)
			}
		}
	}
}
