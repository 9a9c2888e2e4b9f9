package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/weights/weightstest"
)

// A trained model is adapted by adapters of low rank: the run says how much of it is trained, goes
// on, and is evaluated; what is merged is evaluated alike, has no adapters, and is trained from.
func TestAdapters(t *testing.T) {
	dir := t.TempDir()
	base, adapted, merged, again := filepath.Join(dir, "base"), filepath.Join(dir, "adapted"), filepath.Join(dir, "merged"), filepath.Join(dir, "again")
	must(t, exitDone, tinyArgs(base, "--max-steps", "4", "--quiet")...)
	stderr := fails(t, exitUsage, []string{"merge", "--checkpoint", base, "--out", merged}, "has nothing to merge: model.lora.rank is 0 and model.tuning.ssf is false", "what weights can take in they have already")
	if _, err := os.Stat(merged); err == nil {
		t.Errorf("a merge that failed wrote %s: %s", merged, stderr)
	}
	args := []string{"finetune", "--checkpoint", base, "--out", adapted, "--set", "model.lora.rank=2", "--set", "model.lora.alpha=8",
		"--set", "model.lora.dropout=0.1", "--set", "optimizer.lr=0.01", "--set", "schedule.warmup_steps=0", "--set", "schedule.kind=constant"}
	_, stderr = must(t, exitDone, append(args, "--max-steps", "3")...)
	contains(t, stderr, " parameters, ", " trained, ", "left at random (image/blocks/00/attn/proj/lora_a, ")
	stdout, _ := must(t, exitDone, "inspect", adapted)
	contains(t, stdout, "text/layers/00/attention/qkv/lora_b", "96 x 2", "\ntrained ")
	_, stderr = must(t, exitDone, append(args, "--max-steps", "6")...)
	contains(t, stderr, "step 6/6")

	stdout, _ = must(t, exitDone, "merge", "--checkpoint", adapted, "--out", merged)
	contains(t, stdout, filepath.Join(merged, "checkpoints", "step-00000006"))
	fails(t, exitUsage, []string{"merge", "--checkpoint", adapted, "--out", merged}, "holds a run already: choose another folder")
	fails(t, exitUsage, []string{"merge", "--checkpoint", adapted}, "--out")
	stdout, _ = must(t, exitDone, "inspect", merged)
	if strings.Contains(stdout, "lora_") || strings.Contains(stdout, "\ntrained ") {
		t.Errorf("what is merged has adapters or an optimiser:\n%s", stdout)
	}
	features := func(run string) []float32 { return embedded(t, run) }
	want := features(adapted)
	if d := farthest(features(merged), want); d > 1e-6 {
		t.Errorf("merged features differ by %.1e", d)
	}
	if d := farthest(features(base), want); d < 1e-2 {
		t.Errorf("adapters move features by no more than %.1e", d)
	}
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", merged, "--split", "test")
	contains(t, stdout, "retrieval on test: ", "step 6 of "+merged)
	fails(t, exitUsage, []string{"eval", "--checkpoint", adapted, "--set", "model.lora.rank=3"}, "model.lora.rank")
	fails(t, exitFailed, tinyArgs(merged), weightsAlone(merged)...)
	fails(t, exitFailed, append(args[:3:3], "--out", again, "--resume", merged), weightsAlone(merged)...)
	_, stderr = must(t, exitDone, "finetune", "--checkpoint", adapted, "--out", filepath.Join(dir, "whole"), "--set", "model.lora.rank=0", "--max-steps", "1")
	contains(t, stderr, "with tuning of the checkpoint merged (image/blocks/00/attn/proj/weight, ")
	_, stderr = must(t, exitDone, "finetune", "--checkpoint", merged, "--out", again, "--max-steps", "1", "--quiet")
	if strings.Contains(stderr, "left at random") {
		t.Errorf("a run from what is merged: %s", stderr)
	}
}

// embedded are the features of the test split by a run, images before texts.
func embedded(t *testing.T, run string, args ...string) []float32 {
	t.Helper()
	out := filepath.Join(t.TempDir(), "features")
	must(t, exitDone, append([]string{"embed", "--checkpoint", run, "--split", "test", "--out", out, "--quiet"}, args...)...)
	f := floats(t, filepath.Join(out, "features.safetensors"))
	return slices.Concat(f["image"], f["text"])
}

// farthest is the largest difference of two lists, infinite where one is not a number.
func farthest(a, b []float32) (d float64) {
	for i, v := range a {
		d = max(d, math.Abs(float64(v-b[i])))
	}
	if math.IsNaN(d) {
		return math.Inf(1)
	}
	return d
}

// What is exported of an adapted run is what is exported of the merged one, byte for byte, and computes the same
// after an import. With --momentum-encoder, and as ALBEF's twins, adapters are those of the teacher.
func TestExportAdapted(t *testing.T) {
	for system, forms := range map[string][]string{ // form and side
		"albef": {"geoalign", "geoalign text", "timm image", "hf image", "hf text", "onnx", "albef"},
		"clip":  {"geoalign", "timm image", "hf", "open_clip", "onnx"},
	} {
		t.Run(system, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
			small := sets("data.scenes.val_samples=12", "data.scenes.test_samples=10", "data.scenes.epoch_samples=60", "train.batch_size=4", "eval.batch_size=10")
			if system == "albef" {
				must(t, exitDone, tinyArgs(at("base"), "--max-steps", "2", "--quiet")...)
			} else {
				must(t, exitDone, slices.Concat([]string{"import", "--from", weightstest.Stored(t, "clip"), "--out", at("base")}, small)...)
			}
			must(t, exitDone, append([]string{"finetune", "--checkpoint", at("base"), "--out", at("adapted"), "--set", "model.lora.rank=2", "--set", "model.lora.layers=['image/blocks/*/*/*', 'text/layers/*/*/*']",
				"--set", "optimizer.lr=0.02", "--set", "schedule.warmup_steps=0", "--set", "schedule.kind=constant", "--set", "train.keep_last=3", "--set", "train.save_every_steps=2", "--max-steps", "4", "--quiet"}, small...)...)
			must(t, exitDone, "merge", "--checkpoint", at("adapted"), "--out", at("merged"))
			for _, form := range forms {
				to, side, _ := strings.Cut(form, " ")
				for _, run := range []string{"adapted", "merged"} {
					stdout, stderr := must(t, exitDone, "export", "--checkpoint", at(run), "--to", to, "--side", side, "--out", at(form, run))
					if says := strings.Contains(stdout+stderr, "adapters (model.lora) are merged"); says != (run == "adapted") {
						t.Errorf("%s of %s: %s%s", form, run, stdout, stderr)
					}
				}
				if to == "albef" { // what is merged has no twins
					continue
				}
				err := filepath.WalkDir(at(form, "merged"), func(path string, d os.DirEntry, err error) error {
					if err != nil || d.IsDir() || d.Name() == "README.md" { // which names the folder, and the evaluation of its run
						return err
					}
					want, err := os.ReadFile(path)
					if err != nil {
						return err
					}
					got, err := os.ReadFile(at(form, "adapted", filepath.Base(path)))
					if want, got := strings.ReplaceAll(string(want), at(form, "merged"), at(form, "adapted")), string(got); want != got {
						t.Errorf("%s: %s differs from that of the merged run", form, d.Name())
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			want := embedded(t, at("adapted"))
			if d := farthest(embedded(t, at("base")), want); d < 1e-2 {
				t.Errorf("adapters move features by no more than %.1e", d)
			}
			for _, form := range []string{"albef", "hf", "open_clip"} {
				if !slices.Contains(forms, form) {
					continue
				}
				must(t, exitDone, slices.Concat([]string{"import", "--from", at(form, "adapted"), "--config", at("adapted", "config.toml"), "--out", at("back", form),
					"--set", "model.lora.rank=0", "--set", "model.image.heads=2", "--set", "model.text.heads=2", "--set", "data.vocab=" + at("adapted", "checkpoints", "step-00000004", "tokenizer.json"), "--set", "data.template=" + map[bool]string{true: "albef", false: "file"}[form == "albef"]}, small)...)
				if d := farthest(embedded(t, at("back", form)), want); d > 1e-6 {
					t.Errorf("%s: imported features differ by %.1e", form, d)
				}
			}
			if system == "clip" { // adapters alone, put into the model that they were trained beside
				must(t, exitDone, "export", "--checkpoint", at("base"), "--to", "hf", "--out", at("base-hf"))
				must(t, exitDone, "export", "--checkpoint", at("adapted"), "--to", "peft", "--out", at("peft"))
				stdout, stderr := must(t, exitDone, slices.Concat([]string{"import", "--from", at("base-hf"), "--adapter", at("peft"), "--out", at("back", "peft"), "--set", "data.kind=scenes"}, small)...)
				contains(t, stdout+stderr, "adapters of ", "trained as a whole")
				if d := farthest(embedded(t, at("back", "peft")), want); d > 1e-5 {
					t.Errorf("adapters of PEFT: features differ by %.1e", d)
				}
			}
			must(t, exitDone, "average", "--checkpoint", at("adapted"), "--last", "2", "--out", at("mean"))
			const layer = "text/layers/01/ffn/output"
			mean := floats(t, at("mean", "checkpoints", "step-00000004", "model.safetensors"))
			var sum []float32
			for _, step := range []string{"step-00000002", "step-00000004"} {
				must(t, exitDone, "merge", "--checkpoint", at("adapted", "checkpoints", step), "--out", at(step))
				x := floats(t, at(step, "checkpoints", step, "model.safetensors"))
				if sum == nil {
					sum = make([]float32, len(x[layer+"/weight"]))
				}
				for i, v := range x[layer+"/weight"] {
					sum[i] += v / 2
				}
			}
			if _, has := mean[layer+"/lora_a"]; has || farthest(mean[layer+"/weight"], sum) > 1e-7 {
				t.Errorf("the mean of adapted checkpoints is %.1e from that of the merged weights", farthest(mean[layer+"/weight"], sum))
			}
			must(t, exitDone, "eval", "--checkpoint", at("mean"))
			if system != "albef" {
				return
			}
			must(t, exitDone, "export", "--checkpoint", at("adapted"), "--to", "albef", "--out", at("twin"), "--momentum-encoder")
			online, twin := floats(t, at("albef", "adapted", "model.safetensors")), floats(t, at("twin", "model.safetensors"))
			for _, name := range []string{"visual_encoder.blocks.0.attn.qkv.weight", "text_encoder.bert.encoder.layer.0.output.dense.weight"} {
				prefix, rest, _ := strings.Cut(name, ".")
				if !slices.Equal(online[prefix+"_m."+rest], twin[name]) || slices.Equal(online[name], twin[name]) || len(twin[name]) == 0 {
					t.Errorf("the EMA copy of %s lacks the adapter of the teacher", name)
				}
			}
			if norm := "visual_encoder_m.norm.weight"; !slices.Equal(online[norm], online["visual_encoder.norm.weight"]) || len(online[norm]) == 0 {
				t.Errorf("%s is not the locked parameter", norm)
			}
			if d := farthest(embedded(t, at("mean"), "--momentum-encoder"), embedded(t, at("mean"))); d == 0 {
				t.Error("the mean has the twins of its parameters")
			}
		})
	}
}
