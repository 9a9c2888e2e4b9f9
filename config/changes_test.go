package config

import (
	"fmt"
	"slices"
	"testing"
)

// What each key may do to a run or to a checkpoint is stated here once more, since a key
// without its tag would let a run go on as another one.
func TestTags(t *testing.T) {
	want := map[string]string{
		"fixed meaning": "[model.system model.image.style model.image.heads model.image.activation model.image.eps model.image.pool model.image.mean model.image.std model.text.style model.text.heads model.text.activation model.text.eps model.text.pool model.head.identity model.heads.activation model.heads.residual]",
		"fixed model": "[model.image.size model.image.patch model.image.depth model.image.width model.image.mlp model.image.registers model.image.resize model.image.crop model.image.interpolation model.image.regions.in model.image.regions.encoder model.image.regions.layers model.image.regions.metric model.image.regions.metric_blocks model.text.layers " +
			"model.text.fusion_layers model.text.width model.text.mlp model.text.positions model.text.gru.embedding model.text.gru.directions model.lora.rank model.lora.alpha model.lora.layers model.head.dim model.head.topology " +
			"model.head.token_blocks model.interaction.kind model.interaction.direction model.interaction.class_tokens model.interaction.hidden model.interaction.attention_scale model.interaction.pool model.interaction.lse_scale model.interaction.steps model.interaction.unit_queries model.interaction.metric model.heads.in_image model.heads.in_text model.heads.layers model.heads.hidden model.heads.layer_norm model.heads.center model.align.method model.views.hidden objective.itc.log_temperature objective.softmax.classes objective.gssf.form objective.gssf.blocks objective.swav.prototypes]",
		"fixed run": "[run.seed model.image.freeze model.text.freeze model.heads.start model.align.center model.align.unit_length model.align.cca.shrinkage model.align.cca.components model.align.cca.power model.align.ridge.direction model.align.ridge.penalty model.align.procrustes.rotation_only model.align.csa.shrinkage " +
			"model.align.csa.components model.align.asif.k model.align.asif.p model.align.wasserstein.components model.align.wasserstein.rows model.align.wasserstein.restarts momentum.enabled queue.size init.checkpoint init.image.path init.text.path]",
		"change silent":   "[run.name run.out]",
		"change harmless": "[data.cache_features train.save_every_steps train.save_every_minutes train.keep_last train.keep_best train.keep_best_by train.keep_every_steps]",
	}
	got := map[string][]string{}
	var c Config
	for _, f := range leaves(&c) {
		for _, name := range []string{"fixed", "change"} {
			if v := f.tag.Get(name); v != "" {
				got[name+" "+v] = append(got[name+" "+v], f.path)
			}
		}
	}
	for k, list := range got {
		if fmt.Sprint(list) != want[k] {
			t.Errorf("%s: %v, want %s", k, list, want[k])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got the tags %v", got)
	}
}

func TestConflicts(t *testing.T) {
	old, now := small(), small()
	now.Run.Name, now.Run.Seed, now.Train.KeepLast = "x", 1, 5
	now.Model.Image.Depth, now.Model.Image.Heads, now.Model.Image.MLP = 3, 6, 4*768 // what 0 stands for
	now.Objective.Geometric.Weight = 1
	paths := func(use Fixed) (list []string) {
		for _, c := range Conflicts(old, now, use) {
			list = append(list, c.Path)
		}
		return list
	}
	for use, want := range map[Fixed][]string{
		FixedMeaning: {"model.image.heads"},
		FixedModel:   {"model.image.depth", "model.image.heads"},
		FixedRun:     {"objective.geometric.weight", "run.seed", "model.image.depth", "model.image.heads"},
	} {
		if got := paths(use); !slices.Equal(got, want) {
			t.Errorf("%d: got %v, want %v", use, got, want)
		}
	}
	silent, harmless := []string{}, []string{}
	for _, d := range Differences(old, now) {
		if d.Silent {
			silent = append(silent, d.Path)
		}
		if d.Harmless {
			harmless = append(harmless, d.Path)
		}
	}
	if fmt.Sprint(silent, harmless) != "[run.name] [run.name train.keep_last]" {
		t.Errorf("silent %v, harmless %v", silent, harmless)
	}
}
