package train

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
)

// connectorRun trains a small model for a few steps and returns the run folder, whose
// model judges hard negatives.
func connectorRun(t *testing.T, sets ...string) string {
	t.Helper()
	dir := t.TempDir()
	s := small(t, 0, 0, append([]string{"model.image.width=16", "model.text.layers=1", "momentum.enabled=false", "queue.size=0", "objective.itc.weight=0", "objective.distill.alpha=0"}, sets...)...)
	for i := range 3 {
		s.must(t, i)
	}
	s.save(t, dir, 3)
	return dir
}

func mafaSets(dir string) []string {
	return []string{"objective.mafa.connector=" + strconv.Quote(dir), "objective.mafa.positive_above=0.3", "objective.mafa.negative_below=0.25", "objective.mafa.uniform=0.5"}
}

// TestRelabellingResumes: steps with a connector and a share of the uniform distribution
// that begins in the second epoch have the same bits after a resume as without one.
func TestRelabellingResumes(t *testing.T) {
	dir := connectorRun(t)
	const cut, end = 6, 9 // an epoch has 8 batches: 7 of 8 samples and a rest
	whole, half := small(t, 0, 0, mafaSets(dir)...), small(t, 0, 0, mafaSets(dir)...)
	var want []StepResult
	for i := range end {
		r := whole.must(t, i)
		r.Parts = slices.Clone(r.Parts)
		want = append(want, r)
		if i < cut {
			half.must(t, i)
		}
	}
	ck := half.save(t, t.TempDir(), cut)
	again := small(t, 0, 0, mafaSets(dir)...)
	check.Get(again.Restore(ck))(t)
	relabelled := 0.
	for i := cut; i < end; i++ {
		got := again.must(t, i)
		if math.Float64bits(got.Loss) != math.Float64bits(want[i].Loss) || !slices.Equal(got.Parts, want[i].Parts) {
			t.Errorf("step %d after a resume: %v %v, uninterrupted %v %v", i, got.Loss, got.Parts, want[i].Loss, want[i].Parts)
		}
		for _, p := range got.Parts {
			if strings.HasPrefix(p.Name, "mafa_") {
				relabelled += p.Value
			}
		}
	}
	if relabelled == 0 {
		t.Error("no negative was relabelled: the test shows nothing")
	}
}

// TestConnectorErrors: what cannot judge is refused with the key that names it.
func TestConnectorErrors(t *testing.T) {
	plain := connectorRun(t)
	other := connectorRun(t, "data.vocab_size=64")
	headless := connectorRun(t, "objective.itm.weight=0", "eval.rerank_top=0")
	large := connectorRun(t, "model.image.size=32")
	damaged := connectorRun(t)
	files, err := filepath.Glob(filepath.Join(damaged, "checkpoints", "step-*", "model.safetensors"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	check.OK(t, os.Truncate(files[0], 40))
	for dir, want := range map[string]string{
		"nowhere": "there is no such folder",
		other:     "another vocabulary",
		headless:  "no match head",
		large:     "images of model.image.size = 16 (it takes 32)",
		damaged:   "is damaged: model.safetensors has 40 bytes",
	} {
		_, err := trySmall(t, 0, 0, mafaSets(dir)...)
		check.Error(t, err, want, model.ConnectorKey)
	}
	if _, err := trySmall(t, 0, 0, mafaSets(plain)...); err != nil {
		t.Error(err)
	}
}

// TestTCLResumes: steps with two views and all terms have the same bits after a resume.
func TestTCLResumes(t *testing.T) {
	sets := []string{"data.views=2", "data.blur=0.5", "objective.tcl.intra=true", "objective.tcl.local=true", "objective.tcl.grid=2"}
	whole := small(t, 0, 0, sets...)
	for i := range 4 {
		whole.must(t, i)
	}
	ck := whole.save(t, t.TempDir(), 4)
	again := small(t, 0, 0, sets...)
	check.Get(again.Restore(ck))(t)
	for i := 4; i < 7; i++ {
		want, got := whole.must(t, i), again.must(t, i)
		if math.Float64bits(got.Loss) != math.Float64bits(want.Loss) || !slices.Equal(got.Parts, want.Parts) {
			t.Errorf("step %d after a resume: %v %v, uninterrupted %v %v", i, got.Loss, got.Parts, want.Loss, want.Parts)
		}
		terms := 0
		for _, p := range got.Parts {
			if strings.HasPrefix(p.Name, "itc_") && p.Measure && finite(p.Value) {
				terms++
			}
		}
		if terms != 4 {
			t.Errorf("step %d logs %d further terms, want 4", i, terms)
		}
	}
	for name, x := range again.memory() {
		if !slices.Equal(x, whole.memory()[name]) {
			t.Errorf("%s differs", name)
		}
	}
}
