package run

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/tasks/retrieval"
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
			o := check.Get(Open(dir, OpenOptions{}))(t)
			defer o.Close()
			if r := o.Config.Data.Regions.Most; o.Config.Model.Image.Regions.In != 24 || r != 4 {
				t.Errorf("%d regions of %d features are stored", r, o.Config.Model.Image.Regions.In)
			}
			s, err := o.Evaluate(t.Context(), retrieval.Name, "val", nil)
			if err != nil || s.(retrieval.Scores).First != result.Scores.(retrieval.Scores).First {
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
		filetest.Write(t, filepath.Join(dir, split+"_caps.txt"), "a red one\na green one\na blue one\na white one\n")
	}
	return append([]string{"data.root=" + dir, "data.regions.test=", "data.vocab_min_count=1", "train.batch_size=4"}, host...)
}
