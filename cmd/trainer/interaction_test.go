package main

import (
	"os"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// interactionArgs train a tiny model of two towers without a teacher.
func interactionArgs(dir string, more ...string) []string {
	args := tinyArgs(dir, "--quiet", "--max-steps", "6")
	args = append(args, sets(append([]string{"model.text.fusion_layers=0", "momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "objective.itc.weight=0",
		"objective.itc.in_batch_weight=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0", "train.save_every_steps=3"}, more...)...)...)
	return args
}

// TestInteractionRuns: a model that compares tokens trains with every loss over scores of
// pairs, resumes to the same bits, is evaluated, alone and with another one, and is refused where
// one vector of an image is asked for.
func TestInteractionRuns(t *testing.T) {
	whole, filip, clip := t.TempDir(), t.TempDir(), t.TempDir()
	sets := []string{"model.system=matching", "model.interaction.kind=max_soft", "objective.itc.score=gssf", "objective.hinge.weight=1", "objective.hinge.warmup_steps=2", "objective.poly.weight=1", "objective.cmpm.weight=1", "objective.siglip.weight=1"}
	must(t, exitDone, interactionArgs(whole, sets...)...)
	must(t, exitDone, append(interactionArgs(filip, sets...), "--max-steps", "3")...)
	must(t, exitDone, interactionArgs(filip, sets...)...)
	last := func(dir string) map[string]float64 { r := rows(t, dir); return r[len(r)-1].Values }
	for name, v := range last(whole) {
		if w := last(filip)[name]; w != v && !strings.Contains(name, "second") && !strings.Contains(name, "time") && !strings.Contains(name, "minutes") && !strings.Contains(name, "bytes") {
			t.Errorf("%s is %v in one go, %v resumed", name, v, w)
		}
	}
	must(t, exitDone, interactionArgs(clip, "model.system=clip", "objective.itc.in_batch_weight=1")...)

	stdout, stderr := must(t, exitDone, "eval", "--checkpoint", filip, "--json")
	contains(t, stdout, `"score": "max_soft"`)
	contains(t, stderr, "scored ", " pairs of an image and a text in ", " a second")
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", filip, "--with", clip, "--json", "--set", "eval.folds=2")
	contains(t, stdout, `"score": "mean of max_soft and cosine"`)
	must(t, exitDone, "report", filip, "--out", filip+"/page.html")
	page := check.Get(os.ReadFile(filip + "/page.html"))(t)
	contains(t, string(page), "histogram of scores: max_soft", "there are scores of pairs, but no features to draw")

	fails(t, exitUsage, []string{"report", filip, "--color", "shape"}, `--color "shape": the model compares images and texts by their tokens`)

	const tokens = "compares images and texts by all their tokens (model.interaction)"
	fails(t, exitUsage, []string{"embed", "--checkpoint", filip}, tokens)
	fails(t, exitUsage, []string{"eval", "--checkpoint", filip, "--task", "zeroshot"}, tokens, "use trainer eval --task retrieval")
	fails(t, exitUsage, []string{"eval", "--checkpoint", clip, "--with", filip, "--task", "probe"}, "--with averages scores of retrieval")
	other := t.TempDir()
	must(t, exitDone, interactionArgs(other, "model.system=clip", "objective.itc.in_batch_weight=1", "data.scenes.val_samples=10")...)
	fails(t, exitUsage, []string{"eval", "--checkpoint", clip, "--with", other}, "other splits", "12 and 10 images")
	fails(t, exitUsage, interactionArgs(t.TempDir(), "model.system=clip", "model.interaction.kind=max_ave", "objective.hinge.weight=1", "momentum.enabled=true"), "momentum.enabled: must be false with model.interaction")
	fails(t, exitUsage, tinyArgs(t.TempDir(), "--set", "model.interaction.kind=max_ave"), "model.interaction.kind: must be empty")
}

// TestVectorsRuns: SGR and SAF train, resume to the same bits, and are evaluated with each other, which is SGRAF.
func TestVectorsRuns(t *testing.T) {
	whole, sgr, saf := t.TempDir(), t.TempDir(), t.TempDir()
	sets := []string{"model.system=matching", "objective.hinge.weight=1", "model.interaction.sim_dim=8", "objective.itc.score=gssf", "model.interaction.metric=attention"}
	must(t, exitDone, interactionArgs(whole, append(sets, "model.interaction.kind=sgr")...)...)
	must(t, exitDone, append(interactionArgs(sgr, append(sets, "model.interaction.kind=sgr")...), "--max-steps", "3")...)
	must(t, exitDone, interactionArgs(sgr, append(sets, "model.interaction.kind=sgr")...)...)
	last := func(dir string) float64 { r := rows(t, dir); return r[len(r)-1].Values["loss"] }
	if last(whole) != last(sgr) {
		t.Errorf("loss %v in one go, %v resumed", last(whole), last(sgr))
	}
	must(t, exitDone, interactionArgs(saf, append(sets, "model.interaction.kind=saf")...)...)
	stdout, _ := must(t, exitDone, "eval", "--checkpoint", sgr, "--with", saf, "--json")
	contains(t, stdout, `"score": "mean of sgr and saf"`)
	for key, want := range map[string]string{
		"model.interaction.direction=both": `model.interaction.direction: must be "text_to_image" or empty with model.interaction.kind = "sgr" (got "both"); it is words that are compared with an image`,
		"model.interaction.sim_dim=0":      "model.interaction.sim_dim: must be > 0 (got 0)",
		"model.interaction.steps=0":        "model.interaction.steps: must be > 0 (got 0)",
		"model.interaction.dropout=1":      "model.interaction.dropout: must be at least 0 and below 1 (got 1)",
	} {
		fails(t, exitUsage, interactionArgs(t.TempDir(), append(sets, "model.interaction.kind=sgr", key)...), want)
	}
}
