package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/train/runlog"
)

// featuresFolder writes n pairs of features of w channels, where a text is its image rotated by a
// third of the channels, into a folder.
func featuresFolder(t *testing.T, n, w int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	image, text := make([]float32, n*w), make([]float32, n*w)
	for i := range image {
		image[i] = float32(r.NormFloat64())
		text[i/w*w+(i+w/3)%w] = image[i]
	}
	return featuresIn(t, w, image, text)
}

// featuresIn writes rows of w numbers of both sides into a folder.
func featuresIn(t *testing.T, w int, image, text []float32) string {
	t.Helper()
	dir := t.TempDir()
	for name, x := range map[string][]float32{"image": image, "text": text} {
		f := check.Get(os.Create(filepath.Join(dir, name+".safetensors")))(t)
		if err := safetensors.Write(f, []safetensors.Tensor{{Name: "rows", Shape: []int{len(x) / w, w}, Data: x}}, nil); err != nil {
			t.Fatal(err)
		}
		check.OK(t, f.Close())
	}
	return dir
}

// rotatedFeatures returns the arguments that train heads on those of featuresFolder.
func rotatedFeatures(t *testing.T, n, w int) []string {
	t.Helper()
	return []string{"--config", "../../configs/heads.toml", "--set", "data.root=" + featuresFolder(t, n, w), "--set", "data.pairs.image=image.safetensors",
		"--set", "data.pairs.text=text.safetensors", "--set", "data.pairs.val_samples=40", "--set", "data.pairs.test_samples=40",
		"--set", "model.heads.hidden=64", "--set", "model.head.dim=16", "--set", "train.batch_size=40", "--set", "eval.batch_size=20"}
}

// TestHeadsFromTheCommandLine trains alignment heads on two files of features, goes on,
// evaluates, embeds and draws them like any other run.
func TestHeadsFromTheCommandLine(t *testing.T) {
	data, dir := rotatedFeatures(t, 400, 12), t.TempDir()
	args := func(steps string) []string {
		return append(append([]string{"train", "--out", dir, "--max-steps", steps, "--json"}, data...), "--set", "schedule.warmup_steps=10", "--set", "optimizer.lr=2e-3")
	}
	must(t, exitDone, args("100")...)
	stdout, stderr := must(t, exitDone, args("250")...)
	contains(t, stderr, "going on from step 100")
	if strings.Contains(stderr, "model.heads") {
		t.Errorf("widths that the files tell have changed: %s", stderr)
	}
	trained := parseJSON(t, stdout)
	if r1 := trained["first"].(map[string]any)["i2t_r1"].(float64); r1 < 90 {
		t.Errorf("R@1 %v of rotated features, chance is 2.5: %s", r1, stdout)
	}
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", dir, "--json")
	if again := parseJSON(t, stdout); again["first"].(map[string]any)["rsum"] != trained["first"].(map[string]any)["rsum"] {
		t.Errorf("eval says %s, training %v", stdout, trained)
	}
	stdout, _ = must(t, exitDone, "embed", "--checkpoint", dir, "--json")
	if m := parseJSON(t, stdout); m["images"] != 40.0 || m["texts"] != 40.0 || m["dim"] != 16.0 {
		t.Errorf("embed: %s", stdout)
	}
	must(t, exitDone, "report", dir, "--quiet")
	if page, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || !strings.Contains(string(page), "row ") {
		t.Errorf("the report has no rows: %v", err)
	}
	if config, err := os.ReadFile(filepath.Join(dir, "config.toml")); err != nil || !strings.Contains(string(config), "in_image = 12") {
		t.Errorf("the run's configuration does not say how wide the features are: %v", err)
	}
}

// TestHeadsRegularised: a run with the transport plans of an alignment, which is fitted anew when
// it goes on, and with random walks ends with the numbers of one that is left alone, and bench
// measures it.
func TestHeadsRegularised(t *testing.T) {
	quickPeak(t)
	data, whole, parts := rotatedFeatures(t, 200, 12), t.TempDir(), t.TempDir()
	data = append(data, "--set", "objective.klot.weight=1", "--set", "objective.klot.rows=20", "--set", "objective.structure.weight=1", "--set", "objective.structure.warmup_steps=4",
		"--set", "schedule.kind=constant", "--set", "compute.threads=1")
	end := func(dir, steps string) map[string]any {
		stdout, _ := must(t, exitDone, append([]string{"train", "--out", dir, "--max-steps", steps, "--json"}, data...)...)
		return parseJSON(t, stdout)["first"].(map[string]any)
	}
	want := end(whole, "6")
	end(parts, "3")
	if got := end(parts, "6"); !reflect.DeepEqual(got, want) {
		t.Errorf("in pieces %v, as a whole %v", got, want)
	}
	last := func(dir string) map[string]float64 {
		rows := check.Get(runlog.ReadMetrics(filepath.Join(dir, runlog.MetricsFile)))(t)
		values := map[string]float64{}
		for name, v := range rows[len(rows)-1].Values {
			if strings.HasPrefix(name, "loss") {
				values[name] = v
			}
		}
		return values
	}
	if got, want := last(parts), last(whole); !reflect.DeepEqual(got, want) || want["loss/klot"] == 0 || want["loss/structure_text"] == 0 {
		t.Errorf("losses in pieces %v, as a whole %v", got, want)
	}
	must(t, exitDone, append([]string{"bench", "--steps", "1", "--warmup", "0", "--json"}, data...)...)
}

// TestHeadsTakeTheirWidths checks that what the files of features tell is known to every
// command that reads the configuration without it.
func TestHeadsTakeTheirWidths(t *testing.T) {
	quickPeak(t)
	data, dir := rotatedFeatures(t, 200, 12), t.TempDir()
	must(t, exitDone, append([]string{"train", "--out", dir, "--max-steps", "2", "--quiet"}, data...)...)
	must(t, exitDone, append([]string{"eval", "--checkpoint", dir, "--quiet"}, data...)...)
	stdout, _ := must(t, exitDone, append([]string{"bench", "--steps", "1", "--warmup", "0", "--json"}, data...)...)
	want := 12*64 + 64 + 64*16 + 16 // weights and biases of a head
	if m := parseJSON(t, stdout); m["parameters"] != float64(2*want+1) {
		t.Errorf("bench measures %v parameters, want two heads of %d and a temperature", m["parameters"], want)
	}
	matrix := "base = \"" + data[1] + "\"\nseeds = [1]\nmetrics = [\"loss\"]\n[[run]]\nname = \"a\"\n"
	base := check.Get(filepath.Abs(data[1]))(t)
	args := append([]string{"ablate", "--config", write(t, "matrix.toml", strings.Replace(matrix, data[1], base, 1)), "--out", filepath.Join(dir, "ablation"), "--set", "train.max_steps=2", "--set", "train.max_epochs=0"}, data[2:]...)
	must(t, exitDone, args...)
	stdout, stderr := must(t, exitDone, args...) // goes on with what is there
	contains(t, stdout, "| a ")
	if strings.Contains(stderr, "=== run") {
		t.Errorf("trained again: %s", stderr)
	}
}

// TestHeadsNeedFeatures gives heads what they cannot read, and features to what reads images.
func TestHeadsNeedFeatures(t *testing.T) {
	data := rotatedFeatures(t, 200, 6)
	fails(t, exitUsage, append([]string{"train"}, tinyHeadsArgs...), `data.kind: must be "pairs" to train or evaluate model.system "heads"`)
	fails(t, exitUsage, append(append([]string{"train", "--out", t.TempDir()}, data...), "--set", "model.heads.in_image=7"),
		"model.heads.in_image: must be 6, the width of ", "image.safetensors (got 7)")
	fails(t, exitUsage, append(append([]string{"train"}, data...), "--set", "model.system=clip", "--set", "model.text.fusion_layers=0"), "data.kind:")
}

// TestHeadsOnOtherData gives a trained model of heads data that is not its own.
func TestHeadsOnOtherData(t *testing.T) {
	data, wide, run := rotatedFeatures(t, 200, 6), rotatedFeatures(t, 200, 9), t.TempDir()
	train := append([]string{"train", "--max-steps", "2", "--quiet", "--out", run}, data...)
	must(t, exitDone, train...)
	fails(t, exitUsage, []string{"eval", "--checkpoint", run, "--set", wide[3]}, "model.heads.in_image: must be 9", "(got 6)", "model.heads.in_text: must be 9")
	fails(t, exitUsage, append([]string{"train", "--max-steps", "4", "--out", run}, wide...), "model.heads.in_image: the run in ", "was started with 6 (got 9)")
	for _, command := range [][]string{{"eval", "--checkpoint", run}, {"embed", "--checkpoint", run}, {"report", run}} {
		fails(t, exitUsage, append(command, "--set", "data.kind=scenes"), `data.kind: must be "pairs" to train or evaluate model.system "heads" (got "scenes")`)
	}
	fails(t, exitUsage, []string{"report", run, "--color", "shape"}, `--color "shape": data.kind "pairs" has no attributes`)
	fails(t, exitUsage, append([]string{"data", "preview"}, data...), `data.kind "pairs" has no images to draw`)
	_, stderr := must(t, exitUsage, "train", "--config", "../../configs/quickstart.toml", "--out", run)
	contains(t, stderr, `model.system: the run in `, `was started with "heads" (got "albef")`, "1 problem")
	if strings.Contains(stderr, "changed since") {
		t.Errorf("a run that is refused has no changes: %s", stderr)
	}
}

// TestHeadsKeepTheirSplits: rows that were trained on are never evaluated.
func TestHeadsKeepTheirSplits(t *testing.T) {
	data, run := rotatedFeatures(t, 200, 6), t.TempDir()
	must(t, exitDone, append([]string{"train", "--max-steps", "2", "--quiet", "--out", run}, data...)...)
	for _, command := range []string{"eval", "embed", "finetune"} {
		fails(t, exitUsage, []string{command, "--checkpoint", run, "--seed", "1"}, "run.seed: ", "was made with run.seed = 42", "(got 1)")
	}
	fails(t, exitUsage, []string{"eval", "--checkpoint", run, "--set", "data.pairs.test_samples=60"}, "data.pairs.test_samples: ", "held 80 rows back", "(got 60)")
	fails(t, exitUsage, append(append([]string{"train", "--max-steps", "4", "--out", run}, data...), "--set", "data.pairs.val_samples=50"), "held 80 rows back")
	must(t, exitDone, "eval", "--checkpoint", run, "--set", "data.pairs.test_samples=20", "--quiet")
	other := rotatedFeatures(t, 100, 6)
	for _, name := range []string{"image", "text"} { // another set of features, which the run has not seen
		dir := strings.TrimPrefix(other[3], "data.root=")
		if err := os.Rename(filepath.Join(dir, name+".safetensors"), filepath.Join(dir, "other-"+name+".safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	must(t, exitDone, "eval", "--checkpoint", run, "--seed", "1", "--quiet", "--set", other[3], "--set", "data.pairs.image=other-image.safetensors",
		"--set", "data.pairs.text=other-text.safetensors", "--set", "data.pairs.test_samples=90", "--set", "data.pairs.val_samples=0")
}

// TestHeadsOfABudget: with a seed of the splits another seed of the run draws other training
// pairs from the same rows, and is not a reason to refuse an evaluation.
func TestHeadsOfABudget(t *testing.T) {
	run := t.TempDir()
	data := append(rotatedFeatures(t, 200, 6), "--set", "data.pairs.seed=7", "--set", "data.pairs.paired=45")
	must(t, exitDone, append([]string{"train", "--max-steps", "2", "--quiet", "--out", run}, data...)...)
	must(t, exitDone, "eval", "--checkpoint", run, "--seed", "1", "--quiet")
	for set, want := range map[string]string{
		"data.pairs.seed=8":    "data.pairs.seed: RUN was made with data.pairs.seed = 7, by which the splits",
		"data.pairs.seed=0":    "run.seed: RUN was made with data.pairs.seed = 7, by which the splits",
		"data.pairs.hold=last": `data.pairs.hold: RUN was made with "random"`,
	} {
		_, stderr := must(t, exitUsage, "eval", "--checkpoint", run, "--set", set)
		contains(t, regexp.MustCompile(regexp.QuoteMeta(run)+`[^ ]*`).ReplaceAllString(stderr, "RUN"), want)
	}
	fails(t, exitFailed, append([]string{"train", "--out", t.TempDir()}, append(data, "--set", "data.pairs.paired=121")...), "data.pairs.paired = 121 is more than the 120 pairs")
}

// TestHeadsOfAnIndex trains and evaluates on a table of pairs with two texts of each image.
func TestHeadsOfAnIndex(t *testing.T) {
	data, run := rotatedFeatures(t, 200, 6), t.TempDir()
	table := "split\timage_row\ttext_row\n"
	for i := range 200 {
		split := "train"
		if i >= 160 {
			split = "val"
		}
		table += fmt.Sprintf("%s\t%d\t%d\n", split, i/2, i)
	}
	dir := strings.TrimPrefix(data[3], "data.root=")
	check.OK(t, os.WriteFile(filepath.Join(dir, "pairs.tsv"), []byte(table), 0o644))
	data = append(data, "--set", "data.pairs.index=pairs.tsv", "--set", "eval.split=val")
	stdout, _ := must(t, exitDone, append([]string{"train", "--max-steps", "2", "--json", "--out", run}, data...)...)
	if m := parseJSON(t, stdout); m["images"] != 20.0 || m["texts"] != 40.0 {
		t.Errorf("evaluated %s", stdout)
	}
	must(t, exitDone, "eval", "--checkpoint", run, "--seed", "1", "--quiet") // the table says what is held out
	must(t, exitDone, "report", run, "--quiet")
	fails(t, exitUsage, []string{"eval", "--checkpoint", run, "--set", "data.pairs.index="}, "data.pairs.index: ", `was made with "pairs.tsv"`)
	fails(t, exitFailed, []string{"eval", "--checkpoint", run, "--split", "test"}, "the test split is empty")
	fails(t, exitUsage, append(append([]string{"train", "--out", t.TempDir()}, data...), "--set", "data.pairs.index=none.tsv"), "data.pairs.index: there is no such file")
}

// TestHeadsEmbedTheirRows finds the rows of the files behind the rows of embeddings.
func TestHeadsEmbedTheirRows(t *testing.T) {
	data, run := rotatedFeatures(t, 200, 6), t.TempDir()
	must(t, exitDone, append([]string{"train", "--max-steps", "2", "--quiet", "--out", run}, data...)...)
	stdout, _ := must(t, exitDone, "embed", "--checkpoint", run, "--json")
	dir := parseJSON(t, stdout)["path"].(string)
	f := check.Get(safetensors.Open(filepath.Join(dir, "features.safetensors")))(t)
	defer f.Close()
	ids := check.Get(f.Int64("image_id"))(t)
	lines := check.Get(os.ReadFile(filepath.Join(dir, "images.jsonl")))(t)
	rows := strings.Split(strings.TrimSpace(string(lines)), "\n")
	if len(ids) != 40 || len(rows) != 40 {
		t.Fatalf("%d ids and %d lines of 40 rows", len(ids), len(rows))
	}
	for i, id := range ids {
		contains(t, rows[i], fmt.Sprintf(`"row":%d,`, i), fmt.Sprintf(`image.safetensors row %d",`, id), fmt.Sprintf(`"image_id":%d}`, id))
	}
	if ids[39] < 50 { // 40 of 200 rows, drawn
		t.Errorf("ids %v count the rows of the split, not of the files", ids)
	}
	if _, err := os.Stat(filepath.Join(dir, "texts.jsonl")); err == nil {
		t.Error("features have captions")
	}
}
