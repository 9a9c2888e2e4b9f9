package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// tinyCLIP is a folder with a stored dual encoder and its vocabulary.
// weightsAlone is what train says of a run folder that a run cannot go on with.
func weightsAlone(dir string) []string {
	return []string{"holds weights alone, as import, average and merge write them, and no run to go on with", "  trainer finetune --checkpoint " + dir + " --out FOLDER\n",
		`  trainer train --config FILE --set 'init.checkpoint="` + dir + `"' --out FOLDER` + "\n", "(trainer inspect " + dir + " --print-config prints it)"}
}

// sets makes flags of settings.
func sets(list ...string) (args []string) {
	for _, s := range list {
		args = append(args, "--set", s)
	}
	return args
}

// Every command uses the run of imported weights as it uses any run.
func TestImport(t *testing.T) {
	from, dir := weightstest.Stored(t, "clip"), t.TempDir()
	imported, tuned, gallery := filepath.Join(dir, "imported"), filepath.Join(dir, "tuned"), filepath.Join(dir, "gallery")
	small := sets("data.scenes.val_samples=8", "data.scenes.epoch_samples=8", "train.batch_size=4", "compute.backend=builtin")

	stdout, _ := must(t, exitDone, slices.Concat([]string{"import", "--from", from, "--dry-run"}, small)...)
	contains(t, stdout, "clip, 62 parameters read", "settings:\n", `  model.text.style="clip"`)
	if _, err := os.Stat(imported); err == nil {
		t.Error("a dry run writes a folder")
	}
	stdout, _ = must(t, exitDone, slices.Concat([]string{"import", "--from", from, "--out", imported, "--json"}, small)...)
	r := parseJSON(t, stdout)
	if r["family"] != "clip" || r["path"] != imported || len(r["read"].([]any)) != 62 || len(r["random"].([]any)) != 0 {
		t.Errorf("%s", stdout)
	}
	stdout, _ = must(t, exitDone, "inspect", imported)
	contains(t, stdout, "model.system  clip", "logit_scale", "WordPiece, template file, 24 tokens")
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", imported)
	contains(t, stdout, "retrieval on val: 8 images")
	must(t, exitDone, "embed", "--checkpoint", imported, "--out", gallery)
	stdout, _ = must(t, exitDone, "search", gallery, "--text", "a red square", "--k", "2", "--checkpoint", imported)
	contains(t, stdout, "2")
	must(t, exitDone, "report", imported)
	_, stderr := must(t, exitDone, slices.Concat([]string{"finetune", "--checkpoint", imported, "--max-steps", "2", "--out", tuned}, sets("init.image.layer_decay=0.5"))...)
	contains(t, stderr, "parameters from "+imported, "62 loaded", "times the learning rate: image tower 0.125 (embeddings) to 0.5 (last block)")
	last := rows(t, tuned)[1]
	if last.Values["lr/image"] != last.Values["lr"]/2 {
		t.Errorf("rates %v", last.Values)
	}
	fails(t, exitFailed, []string{"train", "--config", filepath.Join(imported, "config.toml")}, weightsAlone(imported)...)
	fails(t, exitUsage, slices.Concat([]string{"import", "--from", from, "--out", imported}, small), "holds a run already: choose another folder with --out")
}

// The flags that --settings prints make a configuration that the weights fit.
func TestImportSettings(t *testing.T) {
	from, dir := weightstest.Stored(t, "bert"), t.TempDir()
	stdout, _ := must(t, exitDone, "import", "--from", from, "--settings")
	var args []string
	for line := range strings.SplitSeq(stdout, "\n") {
		if s, ok := strings.CutPrefix(strings.TrimSuffix(line, ` \`), "--set "); ok {
			args = append(args, strings.Trim(s, "'"))
		}
	}
	args = append(args, "data.tokens=6", "model.text.positions=6", "model.system=clip", "objective.itm.weight=0", "objective.mlm.weight=0", "model.text.fusion_layers=0", "eval.rerank_top=0")
	_, stderr := must(t, exitDone, tinyArgs(filepath.Join(dir, "run"), slices.Concat(sets(args...), []string{"--max-steps", "1"})...)...)
	contains(t, stderr, "init.text from "+from, "bert, 29 parameters read, 7 left out (text/mlm/bias, ")
	stderr = fails(t, exitUsage, tinyArgs(filepath.Join(dir, "other"), sets("init.text.path="+from, "model.text.width=16")...),
		"model.text.width: must be 8 for the weights in ", "; all of them: --set ", "--set data.vocab="+from)
	if !strings.Contains(stderr, "the configuration has ") {
		t.Error(stderr)
	}
}

// --settings says which of them no file says.
func TestImportSettingsAssumed(t *testing.T) {
	from := weightstest.Stored(t, "bert")
	check.OK(t, os.Remove(filepath.Join(from, "config.json")))
	const assumed = "no file says how many heads the text tower has: 1 are assumed"
	stdout, stderr := must(t, exitDone, "import", "--from", from, "--settings")
	contains(t, stderr, "note: "+assumed)
	if strings.Contains(stdout, assumed) {
		t.Errorf("a note among the flags: %s", stdout)
	}
	stdout, stderr = must(t, exitDone, "import", "--from", from, "--settings", "--json")
	contains(t, stdout, `"notes": [`, assumed)
	if stderr != "" {
		t.Errorf("%q beside the JSON", stderr)
	}
}

// What is wrong on the command line is said with its cure.
func TestImportRefused(t *testing.T) {
	from := weightstest.Stored(t, "clip")
	for want, args := range map[string][]string{
		"import needs --from":              {"--out", "x"},
		"there is no family \"gpt\"":       {"--from", from, "--out", "x", "--family", "gpt"},
		"has no tensors of the family vit": {"--from", from, "--out", "x", "--family", "vit"},
	} {
		code, _, stderr := trainer(t, append([]string{"import"}, args...)...)
		if code == exitDone || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d %s", args, code, stderr)
		}
	}
}

// TestImportEncoder: one command makes a run of weights of one tower, which the commands use, and files of features are those of the
// weights as they are.
func TestImportEncoder(t *testing.T) {
	from, dir := weightstest.Stored(t, "bert"), t.TempDir()
	t.Chdir(dir)
	check.OK(t, os.WriteFile("texts.txt", []byte("a red square\n\nblue circle\nthe small triangle\n"), 0o666))
	imported := filepath.Join("runs", filepath.Base(from))
	stdout, _ := must(t, exitDone, "import", "--from", from)
	contains(t, stdout, "run folder: "+imported)
	must(t, exitDone, "embed", "--checkpoint", imported, "--texts", "texts.txt", "--out", "gallery")
	stdout, _ = must(t, exitDone, "search", "gallery", "--text", "red square", "--k", "1")
	contains(t, stdout, "3 rows of text by cosine")
	for _, end := range []string{".npy", ".safetensors", ".parquet"} {
		stdout, _ = must(t, exitDone, "embed", "--model", from, "--texts", "texts.txt", "--out", "weights"+end)
		contains(t, stdout, "features of 3 texts of 8 channels in weights"+end)
		must(t, exitDone, "embed", "--checkpoint", imported, "--texts", "texts.txt", "--out", "run"+end)
		var both [2][]byte
		for i, name := range []string{"weights", "run"} {
			both[i] = check.Get(os.ReadFile(name + end))(t)
		}
		if string(both[0]) != string(both[1]) {
			t.Errorf("%s: weights and their run give other features", end)
		}
	}
	names := check.Get(os.ReadFile("weights.jsonl"))(t)
	contains(t, string(names), `{"row":1,"line":3,"caption":"blue circle"}`)
	// alignment heads train on them as they are
	must(t, exitDone, "train", "--set", "model.system=align", "--set", "data.kind=pairs", "--set", "data.pairs.image=weights.parquet", "--set", "data.pairs.image_tensor=features",
		"--set", "data.pairs.text=run.npy", "--set", "data.pairs.val_samples=1", "--set", "data.pairs.test_samples=0", "--set", "model.align.method=procrustes", "--set", "model.head.dim=8", "--set", "eval.rerank_top=0", "--set", "data.cache_dir=cache", "--out", "aligned")
	fails(t, exitUsage, []string{"train", "--config", filepath.Join(imported, "config.toml"), "--out", "x"}, `model.system "text_encoder" is not trained: it is used as it is; trainer finetune --checkpoint RUN trains from it`)
	fails(t, exitUsage, []string{"embed", "--model", from, "--images", ".", "--out", "x.npy"}, `model.system "text_encoder" has no images: embed texts`)
	fails(t, exitUsage, []string{"embed", "--model", from, "--texts", "texts.txt", "--out", "x"}, "--model writes a file of features: name one with --out that ends in .npy, .safetensors or .parquet")
	fails(t, exitUsage, []string{"embed", "--model", from, "--texts", "texts.txt", "--prompt", "query", "--out", "x.npy"}, "data.prompt: names a prompt, and the encoder has none: leave it empty")
	must(t, exitDone, "finetune", "--checkpoint", imported, "--set", `data.sentences.train_files=["texts.txt"]`, "--set", `data.sentences.val_files=["texts.txt"]`, "--set", "train.batch_size=2", "--max-steps", "2", "--out", "tuned")
	must(t, exitDone, "export", "--checkpoint", "tuned", "--to", "sentence-transformers", "--out", "st")
	must(t, exitDone, "embed", "--model", "st", "--texts", "texts.txt", "--out", "tuned.npy")
}
