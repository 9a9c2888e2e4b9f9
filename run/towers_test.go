package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// fused are settings of ALBEF that fit the stored towers but for their sizes and styles.
var fused = []string{"model.system=albef", "model.text.fusion_layers=1", "objective.itm.weight=1", "objective.mlm.weight=1", "model.image.size=16",
	"data.tokens=6", "model.text.positions=6", "momentum.enabled=true", "train.max_steps=2", "train.eval_every_steps=0"}

// A configuration that does not fit the files is refused with what to set, which then fits; parameters are those of the
// files, twins are copies, and a run that goes on needs no files.
func TestTowers(t *testing.T) {
	bert, vit := weightstest.Stored(t, "bert"), weightstest.Stored(t, "vit")
	check.OK(t, os.Remove(filepath.Join(vit, "vocab.txt")))
	dir := t.TempDir()
	sets := append(slices.Clone(fused), "init.image.path="+vit, "init.text.path="+bert, "init.text.layer_decay=0.9")
	_, err := New(t.Context(), settings(t, dir, sets...), Options{})
	var problems config.Errors
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), "model.image.width: must be 8 for the weights in ") {
		t.Fatal(err)
	}
	fixed := weightstest.Flags(t, err)
	for _, want := range []string{"model.image.style=deit", "model.image.patch=4", "model.image.depth=2", "model.image.mean=[0.5,0.5,0.5]", "model.text.style=bert", "model.text.width=8", "data.vocab=" + bert} {
		if !slices.Contains(fixed, want) && want != "model.text.style=bert" {
			t.Errorf("%s is not among %q", want, fixed)
		}
	}
	if len(fixed) != len(problems) {
		t.Errorf("%d flags for %d problems", len(fixed), len(problems))
	}
	cfg := settings(t, dir, append(sets, fixed...)...)
	log := &recorder{}
	r := check.Get(New(t.Context(), cfg, Options{Reporter: log}))(t)
	p := r.pairs.Params()
	for _, folder := range []string{bert, vit} {
		m := check.Get(weights.Open(folder))(t)
		defer m.Close()
		read := 0
		for _, name := range m.Names() {
			q, ok := p.Get(name)
			if !ok || name == "image/pos_embed" {
				continue
			}
			want := make([]float32, q.Len())
			check.OK(t, m.Read(name, q.Shape, want))
			if !slices.Equal(p.Value(q), want) || !slices.Equal(p.MomentumValue(q), want) {
				t.Errorf("%s or its twin is not that of the file", name)
			}
			read++
		}
		if read < 20 {
			t.Errorf("%d parameters of %s", read, folder)
		}
	}
	said := strings.Join(log.lines, "\n")
	for _, want := range []string{"init.image from " + vit, "1 resampled (image/pos_embed)", "random (text/layers/01/crossattention/kv/bias, "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not told: %s", want, said)
		}
	}
	check.Get(r.Train(t.Context()))(t)
	check.OK(t, r.Close())
	for _, folder := range []string{bert, vit} {
		check.OK(t, os.RemoveAll(folder))
	}
	cfg.Train.MaxSteps = 3
	if _, err := New(t.Context(), cfg, Options{}); err != nil {
		t.Errorf("a run that goes on needs its files: %v", err)
	}
	tuned := check.Get(FinetuneConfig(dir, "", OpenOptions{Set: []string{"run.out=" + t.TempDir()}}))(t)
	r = check.Get(New(t.Context(), tuned, Options{}))(t)
	r.Close()
}

// What stored towers cannot be used for is refused with its cure.
func TestTowersRefused(t *testing.T) {
	bert, vit := weightstest.Stored(t, "bert"), weightstest.Stored(t, "vit")
	other := filepath.Join(t.TempDir(), "vocab.txt")
	text := check.Get(os.ReadFile(filepath.Join(bert, "vocab.txt")))(t)
	check.OK(t, os.WriteFile(other, []byte(strings.Replace(string(text), "red\nblue", "blue\nred", 1)), 0o666))
	fits := append(slices.Clone(fused), "model.image.style=deit", "model.image.patch=4", "model.image.depth=2", "model.image.width=8", "model.image.mlp=16", "model.image.mean=[0.5,0.5,0.5]", "model.image.std=[0.5,0.5,0.5]",
		"model.image.interpolation=bilinear", "model.text.width=8", "model.text.mlp=16", "data.vocab="+filepath.Join(bert, "vocab.txt"))
	short := weightstest.Stored(t, "bert")
	weightstest.Without(t, short, func(name string) bool { return strings.Contains(name, "layer.0.output.dense") }, "")
	alone := filepath.Join(t.TempDir(), "bert.safetensors") // without the files of a tokenizer beside it
	if os.Link(filepath.Join(bert, "model.safetensors"), alone) != nil {
		t.Skip("this file system has no links")
	}
	words := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		check.OK(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	few, many := words("few.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nred\n"), words("many.txt", string(text)+"one\ntwo\n")
	for _, c := range []struct {
		sets []string
		want string // in the error; empty: none
	}{
		{[]string{"init.text.path=" + alone, "data.vocab=" + few, "model.text.heads=1"}, ""}, // rows without a token stay
		{[]string{"init.text.path=" + alone, "data.vocab=" + many}, "data.vocab: has 26 tokens, and text/embeddings/word/weight in "},
		{[]string{"init.text.path=" + short}, "init.text.path: lacks text/layers/00/ffn/output/bias, text/layers/00/ffn/output/weight (got \""},
		{[]string{"init.text.path=" + short}, "; --set init.text.allow_missing=true starts these from random numbers"},
		{[]string{"init.text.path=" + short, "init.text.allow_missing=true"}, ""},
		{[]string{"init.image.path=" + vit, "init.text.path=" + bert}, ""},
		{[]string{"init.image.path=" + bert}, "init.image.path: is bert, which has no image tower"},
		{[]string{"init.text.path=" + vit}, "init.text.path: is vit, which has no text tower"},
		{[]string{"init.text.path=" + filepath.Join(vit, "nowhere")}, "init.text.path: there is no such file"},
		{[]string{"init.text.path=" + bert, "init.text.family=roberta"}, "has no tensors of the family roberta"},
		{[]string{"init.text.path=" + bert, "init.text.family=gpt"}, `there is no family "gpt": the families are bert, `},
		{[]string{"init.text.path=" + bert, "data.vocab=" + other}, `data.vocab: has another vocabulary, of 24 tokens, than the weights in `},
		{[]string{"init.text.path=" + bert, "data.vocab="}, "data.vocab: must name the vocabulary of the weights in "},
		{[]string{"init.text.path=" + bert, "model.text.layers=2"}, "; --set model.text.layers=1"},
		{[]string{"init.text.path=" + bert, "model.text.positions=7"}, "; --set model.text.positions=6"},
		{[]string{"init.image.path=" + vit, "model.image.registers=2"}, "; --set model.image.registers=0"},
		{[]string{"init.image.path=" + vit, "model.image.mean=[]", "model.image.std=[]"}, "--set 'model.image.mean=[0.5,0.5,0.5]' --set 'model.image.std=[0.5,0.5,0.5]'"},
	} {
		r, err := New(t.Context(), settings(t, t.TempDir(), append(fits, c.sets...)...), Options{})
		switch {
		case err == nil:
			r.Close()
			if c.want != "" {
				t.Errorf("%q is accepted", c.sets)
			}
		case c.want == "" || !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: %v, want %s", c.sets, err, c.want)
		}
	}
}

// What tuning adds to a tower of stored weights, and a pool that no file of texts has, start fresh without being asked for.
func TestTowersTuned(t *testing.T) {
	bert, vit := weightstest.Stored(t, "bert"), weightstest.Stored(t, "vit")
	check.OK(t, os.Remove(filepath.Join(vit, "vocab.txt")))
	sets := append(slices.Clone(fused), "init.image.path="+vit, "init.text.path="+bert, "model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0",
		"model.text.pool=gpo", "model.lora.rank=2", "model.tuning.adapter_width=2", "model.tuning.prompt_tokens=1", "model.tuning.ssf=true", "model.tuning.metric=dense")
	_, err := New(t.Context(), settings(t, t.TempDir(), sets...), Options{})
	log := &recorder{}
	r, err := New(t.Context(), settings(t, t.TempDir(), append(sets, weightstest.Flags(t, err)...)...), Options{Reporter: log})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	said := strings.Join(log.lines, "\n")
	for _, want := range []string{"random (image/blocks/00/attn/adapter/down/bias, ", "random (text/embeddings/norm/ssf_scale, "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not told: %s", want, said)
		}
	}
	for _, q := range r.pairs.Params().List() {
		if tower := strings.HasPrefix(q.Name, "image/") || strings.HasPrefix(q.Name, "text/"); tower && q.Locked == (q.Added || strings.HasPrefix(q.Name, "text/pool/")) {
			t.Errorf("%s: added %t, locked %t", q.Name, q.Added, q.Locked)
		}
	}
}
