package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// floats reads all float tensors of a safetensors file.
func floats(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	f := check.Get(safetensors.Open(path))(t)
	defer f.Close()
	all := map[string][]float32{}
	for _, info := range f.Tensors() {
		all[info.Name] = check.Get(f.Float32(info.Name))(t)
	}
	return all
}

// One run is exported with and without its twins, evaluated with them, and the mean of its checkpoints is a run.
func TestExportTwinAverage(t *testing.T) {
	dir := t.TempDir()
	at := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	ok := func(args ...string) string {
		t.Helper()
		code, out, stderr := trainer(t, args...)
		if code != exitDone {
			t.Fatalf("%q: code %d: %s", args, code, stderr)
		}
		return out
	}
	ok("train", "--config", "testdata/tiny.toml", "--out", at("run"), "--quiet", "--max-steps", "8", "--set", "train.keep_last=3", "--set", "train.eval_every_steps=4")
	step := func(n, file string) map[string][]float32 {
		return floats(t, at("run", "checkpoints", "step-0000000"+n, file))
	}
	last, twins := step("8", "model.safetensors"), step("8", "momentum.safetensors")

	var w struct {
		Files []string
		To    string
	}
	if err := json.Unmarshal([]byte(ok("export", "--checkpoint", at("run"), "--to", "geoalign", "--out", at("plain"), "--json")), &w); err != nil || w.To != "geoalign" {
		t.Errorf("%v: %+v", err, w)
	}
	ok("export", "--checkpoint", at("run"), "--to", "geoalign", "--out", at("twin"), "--momentum-encoder")
	plain, twin := floats(t, at("plain", "model.safetensors")), floats(t, at("twin", "model.safetensors"))
	for name, x := range last {
		want := x
		if of, has := twins[name]; has {
			want = of
		}
		if !slices.Equal(plain[name], x) || !slices.Equal(twin[name], want) {
			t.Errorf("%s differs in what is exported", name)
		}
	}
	if len(plain) != len(last) || len(twin) != len(last) || len(twins) == 0 {
		t.Errorf("%d and %d of %d parameters", len(plain), len(twin), len(last))
	}
	for _, to := range []string{"onnx", "albef"} {
		ok("export", "--checkpoint", at("run"), "--to", to, "--out", at(to))
	}
	if list, _ := filepath.Glob(at("onnx", "*.onnx")); len(list) != 3 {
		t.Errorf("ONNX files %v", list)
	}
	out := ok("export", "--checkpoint", at("run"), "--to", "hf", "--side", "text", "--out", at("bert"))
	if !strings.Contains(out, "hf, BertModel: ") || !strings.Contains(out, "read it with transformers.BertModel.from_pretrained(") {
		t.Errorf("got %s", out)
	}

	features := func(name string, args ...string) map[string][]float32 {
		t.Helper()
		ok(append([]string{"embed", "--checkpoint", at("run"), "--out", at(name), "--quiet"}, args...)...)
		return floats(t, at(name, "features.safetensors"))
	}
	online, teacher := features("online"), features("teacher", "--momentum-encoder")
	if slices.Equal(online["image"], teacher["image"]) || slices.Equal(online["text"], teacher["text"]) {
		t.Error("--momentum-encoder changes no features")
	}
	if out := ok("eval", "--checkpoint", at("run"), "--momentum-encoder", "--json"); !strings.Contains(out, "retrieval") {
		t.Errorf("got %s", out)
	}

	ok("average", "--checkpoint", at("run"), "--last", "2", "--out", at("mean"))
	earlier, mean := step("4", "model.safetensors"), floats(t, at("mean", "checkpoints", "step-00000008", "model.safetensors"))
	for name, x := range last {
		for i, v := range x {
			if want := (v + earlier[name][i]) / 2; mean[name][i] != want {
				t.Fatalf("%s: mean %v, want %v", name, mean[name][i], want)
			}
		}
	}
	ok("eval", "--checkpoint", at("mean"))
	fails(t, exitFailed, tinyArgs(at("mean")), weightsAlone(at("mean"))...)
	ok("average", "--checkpoint", at("run"), "--best", "1", "--out", at("best"), "--json")
	if out := ok("average", "--checkpoint", at("run"), "--last", "1", "--out", at("last")); !strings.HasPrefix(out, "mean of step 8 alone: ") {
		t.Error(out)
	}
	list, err := os.ReadDir(at("best", "checkpoints"))
	if err != nil || len(list) != 2 { // and latest
		t.Errorf("%v, %v", list, err)
	}

	for _, c := range []struct {
		want string
		args []string
	}{
		{"--to must be one of geoalign, hf, timm, open_clip, albef, onnx, sentence-transformers, peft (got \"gguf\")", []string{"export", "--checkpoint", at("run"), "--to", "gguf", "--out", at("x")}},
		{"export needs --to", []string{"export", "--checkpoint", at("run"), "--out", at("x")}},
		{"--side must be image or text (got \"both\")", []string{"export", "--checkpoint", at("run"), "--to", "hf", "--side", "both", "--out", at("x")}},
		{"--dtype must be one of fp32, fp16, bf16 (got \"int8\")", []string{"export", "--checkpoint", at("run"), "--to", "hf", "--dtype", "int8", "--out", at("x")}},
		{"export needs --out", []string{"export", "--checkpoint", at("run"), "--to", "hf"}},
		{"export needs RUN", []string{"export", "--to", "hf"}},
		{"model.text.fusion_layers = 2 cannot be told to hf: it has no layers in which text attends to images: use --to albef or --side image or --side text or --to geoalign", []string{"export", "--checkpoint", at("run"), "--to", "hf", "--out", at("x")}},
		{"step-00000004 holds no checkpoints: give a run folder, not that of a step", []string{"average", "--checkpoint", at("run/checkpoints/step-00000004"), "--last", "1", "--out", at("x")}},
		{"has 2 checkpoints, and the mean of 9 is wanted: take fewer, or keep more in training (train.keep_last)", []string{"average", "--checkpoint", at("run"), "--last", "9", "--out", at("x")}},
		{"Give one of --last and --best", []string{"average", "--checkpoint", at("run"), "--out", at("x")}},
		{"holds a run already", []string{"average", "--checkpoint", at("run"), "--last", "1", "--out", at("run")}},
		{"has no momentum encoder: leave out --momentum-encoder, or train with momentum.enabled = true", []string{"eval", "--checkpoint", "testdata/oldruns/clip-v0", "--momentum-encoder"}},
		{"has no momentum encoder: leave out --momentum-encoder, a model of this kind is trained without", []string{"eval", "--checkpoint", "testdata/oldruns/geomm-swav-v0", "--momentum-encoder"}},
		{"clip-v0/checkpoints/step-00000600 has no momentum encoder", []string{"eval", "--checkpoint", at("run"), "--with", "testdata/oldruns/clip-v0", "--momentum-encoder"}},
	} {
		code, _, stderr := trainer(t, c.args...)
		if code == exitDone || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: code %d: %s\nwant %s", c.args, code, stderr, c.want)
		}
		if _, err := os.Stat(at("x")); err == nil {
			t.Errorf("%q left a folder", c.args)
		}
	}
}
