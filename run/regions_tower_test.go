package run

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// host are the settings of a small host of GSSF over testdata/scenes.toml.
var host = []string{"model.system=matching", "model.image.style=regions", "data.kind=regions", "data.clean=none", "model.text.style=gru", "model.text.gru.embedding=16",
	"model.image.width=32", "model.text.width=32", "model.head.dim=32", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}

// TestRegionTowersLearn trains hosts with every encoder and pool on drawn scenes: pairs of the batch get far nearer than by chance,
// a checkpoint scores the same when it is opened, and its configuration has the sizes of the data.
func TestRegionTowersLearn(t *testing.T) {
	for _, c := range [][]string{
		{"model.image.pool=max", "model.text.gru.directions=forward"},
		{"model.image.regions.encoder=mlp", "model.image.regions.batch_norm=true", "model.image.pool=gpo", "model.text.pool=gpo", "model.image.regions.drop=0.2", "compute.precision=bf16"},
		{"model.image.regions.encoder=graph", "model.image.regions.batch_norm=true", "model.image.regions.layers=2", "model.image.pool=gru", "model.text.pool=max", "compute.recompute=true"},
		{"model.system=clip", "model.head.dim=8", "objective.itc.score=gssf", "model.image.regions.encoder=graph", "model.image.regions.metric=block_diag", "model.image.regions.metric_blocks=4",
			"model.image.regions.drop=0.1", "train.accumulate_steps=2", "train.accumulate=features", "objective.hinge.warmup_steps=75"},
		{"model.interaction.kind=max_ave", "model.image.regions.drop=0.3"},
		{"momentum.enabled=true", "queue.size=32", "objective.itc.weight=1", "objective.itc.in_batch_weight=1", "model.image.freeze=true"},
	} {
		t.Run(strings.Join(c, " "), func(t *testing.T) {
			dir := t.TempDir()
			var seen lossReporter
			cfg := settings(t, dir, append(append([]string{"data.regions.source=scenes", "data.regions.width=24", "train.max_steps=150", "train.eval_every_steps=0", "optimizer.lr=0.004",
				"data.overfit_samples=16", "train.log_every_steps=150"}, host...), c...)...)
			result := trained(t, cfg, Options{Reporter: &seen})
			if chance := 2 * .2 * float64(cfg.ComparedRows()); cfg.Objective.ITC.Weight == 0 && !(seen.loss < .4*chance) {
				t.Errorf("the loss is %v, %v without knowledge", seen.loss, chance)
			}
			o, err := Open(dir, OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			if r := o.Config.Data.Regions.Most; o.Config.Model.Image.Regions.In != 24 || r != 4 {
				t.Errorf("%d regions of %d features are stored", r, o.Config.Model.Image.Regions.In)
			}
			s, err := o.Evaluate(t.Context(), TaskRetrieval, "val", nil)
			if err != nil || s.(Retrieval).First != result.Scores.(Retrieval).First {
				t.Errorf("%v, error %v, want %v", s, err, result.Scores)
			}
		})
	}
}

// regionFiles writes four images of three regions with so many features, and their captions, and returns settings.
func regionFiles(t *testing.T, dir string, width int) []string {
	t.Helper()
	for _, split := range []string{"train", "dev"} {
		err := features.WriteArray(filepath.Join(dir, split+"_ims.npy"), []int{3, width}, func(emit func([]float32) error) error {
			for i := range 4 {
				row := make([]float32, 3*width)
				for k := range row {
					row[k] = float32(math.Sin(float64(7*i + k)))
				}
				if err := emit(row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, split+"_caps.txt"), []byte("a red one\na green one\na blue one\na white one\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return append([]string{"data.root=" + dir, "data.regions.test=", "data.vocab_min_count=1", "train.batch_size=4"}, host...)
}

// TestRegionSizes: sizes come from the files and stay with the run, whose checkpoint opens without them; other widths are told.
func TestRegionSizes(t *testing.T) {
	dir, files := t.TempDir(), t.TempDir()
	sets := append(regionFiles(t, files, 5), "eval.split=val", "train.max_steps=2")
	trained(t, settings(t, dir, sets...), Options{})
	o, err := Open(dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r := o.Config.Model.Image.Regions.In; r != 5 || o.Config.Data.Regions.Most != 3 {
		t.Errorf("%d regions of %d features are stored", o.Config.Data.Regions.Most, r)
	}
	out := filepath.Join(t.TempDir(), "gallery")
	if _, err := o.Embed(t.Context(), "val", out, nil); err != nil {
		t.Error(err)
	}
	refused := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, form := range []string{export.HF, export.Timm, export.ONNX} {
		_, err = o.Export(export.Options{To: form, Side: "image", Out: filepath.Join(t.TempDir(), form)})
		refused("export", err, `model.image.style = "regions" cannot be told to `+form+": it has no tower over features of regions: use --to geoalign")
	}
	_, err = o.WriteRegions(t.Context(), RegionOptions{Split: "val", Out: t.TempDir()})
	refused("regions", err, "model.image.style")
	_, err = o.EmbedFiles(t.Context(), Inputs{Images: t.TempDir()}, filepath.Join(t.TempDir(), "files"), nil)
	refused("embed of files", err, "model.image.style")
	o.Close()

	if err := os.RemoveAll(files); err != nil {
		t.Fatal(err)
	}
	if o, err = Open(dir, OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := o.Load(); err != nil {
		t.Error(err)
	}
	o.Close()

	_, err = Resolve(settings(t, dir, append(regionFiles(t, t.TempDir(), 5), "model.image.regions.in=7")...))
	refused("another width", err, "model.image.regions.in: must be 5, the features of a region of ")
	_, err = Resolve(settings(t, dir, sets...))
	refused("no files", err, "data.root: there is no such folder")
	wide := t.TempDir()
	regionFiles(t, wide, 6)
	_, err = Open(dir, OpenOptions{Set: []string{"data.root=" + wide}})
	refused("another width of a checkpoint", err, "model.image.regions.in: must be 6")
}

// TestBatchNormsResume: a run in pieces ends with the parameters, running statistics and twins of a whole one, bit by bit, and
// a mean of checkpoints has the mean of running statistics.
func TestBatchNormsResume(t *testing.T) {
	sets := append([]string{"data.regions.source=scenes", "data.regions.width=8", "model.image.regions.encoder=graph", "model.image.regions.batch_norm=true", "model.image.regions.layers=1",
		"momentum.enabled=true", "queue.size=32", "objective.itc.weight=1", "train.accumulate_steps=2", "train.eval_every_steps=0", "train.save_every_steps=2", "train.keep_last=3", "schedule.kind=constant",
		"optimizer.lr=0.004"}, host...)
	of := func(dir string) (files []string) {
		c, err := checkpoint.Open(filepath.Join(dir, "checkpoints", "step-00000004"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, group := range []string{"model", train.MomentumGroup} {
			b, err := os.ReadFile(filepath.Join(c.Path, group+".safetensors"))
			if err != nil || !strings.Contains(string(b), "image/graph/00/bn/running_var") {
				t.Fatalf("%s has no running statistics: %v", group, err)
			}
			files = append(files, string(b))
		}
		return files
	}
	whole, parts := t.TempDir(), t.TempDir()
	trained(t, settings(t, whole, append(sets, "train.max_steps=4")...), Options{})
	trained(t, settings(t, parts, append(sets, "train.max_steps=2")...), Options{})
	trained(t, settings(t, parts, append(sets, "train.max_steps=4")...), Options{})
	if !slices.Equal(of(whole), of(parts)) {
		t.Error("a run in pieces differs from a whole one")
	}
	mean := filepath.Join(t.TempDir(), "mean")
	if _, err := Average(whole, AverageOptions{Last: 2, Out: mean}); err != nil {
		t.Fatal(err)
	}
	name := "image/bn/running_mean"
	read := func(dir string) []float32 {
		f, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		x, err := f.Float32(name)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	a, b := read(filepath.Join(whole, "checkpoints", "step-00000002")), read(filepath.Join(whole, "checkpoints", "step-00000004"))
	for i, got := range read(filepath.Join(mean, "checkpoints", "step-00000004")) {
		if want := (a[i] + b[i]) / 2; got != want || a[i] == b[i] {
			t.Fatalf("element %d of the mean is %v, of %v and %v", i, got, a[i], b[i])
		}
	}
}
