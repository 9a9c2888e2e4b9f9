package train

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
)

func tutorSets(dir string, more ...string) []string {
	return append([]string{"objective.distill_scores.teacher=" + strconv.Quote(dir), "objective.distill_scores.metric=diag"}, more...)
}

// TestTutorResumes: steps under a frozen teacher have the same bits after a resume as without one, its metric
// moves, and a run goes on with the weights of the teacher that it was started with alone.
func TestTutorResumes(t *testing.T) {
	dir := connectorRun(t)
	whole := small(t, 0, 0, tutorSets(dir)...)
	for i := range 3 {
		whole.must(t, i)
	}
	ck := whole.save(t, t.TempDir(), 3)
	again := small(t, 0, 0, tutorSets(dir)...)
	check.Get(again.Restore(ck))(t)
	for i := 3; i < 5; i++ {
		want := whole.must(t, i)
		parts := slices.Clone(want.Parts)
		got := again.must(t, i)
		if math.Float64bits(got.Loss) != math.Float64bits(want.Loss) || !slices.Equal(got.Parts, parts) {
			t.Errorf("step %d after a resume: %v %v, uninterrupted %v %v", i, got.Loss, got.Parts, want.Loss, parts)
		}
		if !slices.ContainsFunc(got.Parts, func(v Value) bool { return v.Name == "distill_scores" && v.Value > 0 }) {
			t.Errorf("step %d: parts %v", i, got.Parts)
		}
	}
	q, ok := again.model.Params().Get("teacher/gssf/weight")
	if !ok || slices.Max(again.model.Params().Value(q)) <= 1 {
		t.Error("the metric of the teacher is the identity still")
	}

	other := small(t, 0, 0, tutorSets(connectorRun(t, "optimizer.lr=0.01"))...)
	if _, err := other.Restore(ck); err == nil || !strings.Contains(err.Error(), model.TeacherKey+": has other weights than the teacher that this run was started with") {
		t.Errorf("another teacher: %v", err)
	}
	plain := small(t, 0, 0, "objective.distill_scores.teacher=")
	fresh := plain.save(t, t.TempDir(), 0)
	added := small(t, 0, 0, tutorSets(dir, "objective.distill_scores.metric=")...)
	if _, err := added.Restore(fresh); err != nil {
		t.Errorf("a teacher that is added to a run: %v", err)
	}
}

// TestTutorErrors: what cannot teach is refused with the key that names it.
func TestTutorErrors(t *testing.T) {
	for dir, want := range map[string]string{
		"nowhere":                              "there is no such folder",
		connectorRun(t, "data.vocab_size=64"):  "another vocabulary",
		connectorRun(t, "model.image.size=32"): "must read what this run reads",
	} {
		_, err := trySmall(t, 0, 0, tutorSets(dir)...)
		check.Error(t, err, want, model.TeacherKey)
	}
}
