package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A trained model is tuned by scales, shifts, adapters with a metric and bottlenecks: the run says how much of it is
// trained, what is merged and exported computes the same, and a form that has no bottlenecks or prompts refuses them
// by name.
func TestTuning(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, exitDone, tinyArgs(at("base"), "--max-steps", "2", "--quiet")...)
	tune := func(out string, sets ...string) string {
		args := []string{"finetune", "--checkpoint", at("base"), "--out", at(out), "--set", "optimizer.lr=0.02", "--set", "schedule.warmup_steps=0", "--set", "schedule.kind=constant",
			"--set", "train.keep_last=2", "--set", "train.save_every_steps=2", "--max-steps", "4"}
		for _, s := range sets {
			args = append(args, "--set", s)
		}
		_, stderr := must(t, exitDone, args...)
		return stderr
	}
	contains(t, tune("ssf", "model.tuning.ssf=true", "model.lora.rank=2", "model.tuning.metric=diag"), " trained, ", "left at random (image/blocks/00/attn/proj/lora_a, ")
	must(t, exitDone, "merge", "--checkpoint", at("ssf"), "--out", at("merged"))
	stdout, _ := must(t, exitDone, "inspect", at("merged"))
	if strings.Contains(stdout, "ssf_") || strings.Contains(stdout, "lora_") {
		t.Errorf("what is merged has scales or adapters:\n%s", stdout)
	}
	want := embedded(t, at("ssf"))
	if d := farthest(embedded(t, at("merged")), want); d > 2e-6 {
		t.Errorf("merged features differ by %.1e", d)
	}
	if d := farthest(embedded(t, at("base")), want); d < 1e-2 {
		t.Errorf("tuning moves features by no more than %.1e", d)
	}
	for _, to := range []string{"timm", "albef"} {
		side := map[string]string{"timm": "image"}[to]
		stdout, stderr := must(t, exitDone, "export", "--checkpoint", at("ssf"), "--to", to, "--side", side, "--out", at(to))
		contains(t, stdout+stderr, "adapters (model.lora) are merged", "scales and shifts (model.tuning.ssf) are merged")
		must(t, exitDone, "export", "--checkpoint", at("merged"), "--to", to, "--side", side, "--out", at(to+" merged"))
		got := floats(t, filepath.Join(at(to), "model.safetensors"))
		for name, x := range floats(t, filepath.Join(at(to+" merged"), "model.safetensors")) {
			if len(got[name]) != len(x) || farthest(got[name], x) > 0 {
				t.Errorf("%s: %s differs from that of the merged run", to, name)
			}
		}
	}
	must(t, exitDone, "average", "--checkpoint", at("ssf"), "--last", "2", "--out", at("mean"))
	must(t, exitDone, "eval", "--checkpoint", at("mean"))
	fails(t, exitUsage, []string{"eval", "--checkpoint", at("ssf"), "--set", "model.tuning.ssf=false"}, "model.tuning.ssf")

	tune("beside", "model.tuning.adapter_width=3", "model.tuning.prompt_tokens=2", "model.tuning.ssf=true")
	fails(t, exitUsage, []string{"export", "--checkpoint", at("beside"), "--to", "onnx", "--out", at("onnx")}, "model.tuning.adapter_width = 3 cannot be told to onnx", "--to geoalign")
	must(t, exitDone, "export", "--checkpoint", at("beside"), "--to", "geoalign", "--out", at("own"))
	must(t, exitDone, "explain", "--checkpoint", at("beside"), "--split", "val", "--pairs", "2", "--json")
	must(t, exitDone, "merge", "--checkpoint", at("beside"), "--out", at("half"))
	if d := farthest(embedded(t, at("half")), embedded(t, at("beside"))); d > 2e-6 {
		t.Errorf("features of merged scales beside bottlenecks and prompts differ by %.1e", d)
	}
	fails(t, exitUsage, []string{"merge", "--checkpoint", at("half"), "--out", at("whole")}, "nothing to merge")

	tune("prompts", "model.tuning.prompt_tokens=2", "model.tuning.partial_blocks=1")
	fails(t, exitUsage, []string{"export", "--checkpoint", at("prompts"), "--to", "timm", "--side", "image", "--out", at("timm of prompts")}, "model.tuning.prompt_tokens = 2 cannot be told to timm", "--to geoalign")
	tune("biases", "model.tuning.bitfit=true")
	must(t, exitDone, "export", "--checkpoint", at("biases"), "--to", "onnx", "--out", at("onnx"))
}
