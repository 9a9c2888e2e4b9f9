package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/weights"
	"gorgonia.org/tensor"
)

// captionSets make a session train captions alone.
var captionSets = []string{"objective.captioning.weight=1", "objective.captioning.decoder=transformer", "objective.itc.weight=0", "objective.itc.in_batch_weight=0",
	"objective.itm.weight=0", "objective.mlm.weight=0", "queue.size=0", "eval.rerank_top=0"}

// TestInitDecoder: a decoder starts from the fusion layers, the words and the head of masked words of a pre-trained model, its
// teacher from those of the teacher, and goes on from a decoder of its own where a checkpoint has one.
func TestInitDecoder(t *testing.T) {
	s, c := trained(t)
	fresh := small(t, 0, 0, append(captionSets, "run.seed=8")...)
	r, err := InitModel(fresh.model, c, fresh.cfg.Model)
	if err != nil {
		t.Fatal(err)
	}
	p, was := fresh.model.Params(), s.model.Params()
	for name, from := range map[string]string{
		"decoder/embeddings/word/weight": "text/embeddings/word/weight", "decoder/mlm/dense/bias": "text/mlm/dense/bias", "decoder/mlm/bias": "text/mlm/bias",
		"decoder/layers/00/attention/qkv/weight":     "text/layers/02/attention/qkv/weight",
		"decoder/layers/00/crossattention/kv/weight": "text/layers/02/crossattention/kv/weight",
	} {
		q, ok := p.Get(name)
		x, found := was.Get(from)
		if !ok || !found {
			t.Fatalf("%s or %s is missing", name, from)
		}
		if !slices.Equal(p.Value(q), was.Value(x)) || !slices.Equal(p.MomentumValue(q), was.MomentumValue(x)) || slices.Equal(p.Value(q), p.MomentumValue(q)) {
			t.Errorf("%s does not start from %s, or its twin does not", name, from)
		}
		if !slices.Contains(r.Renamed, name) {
			t.Errorf("%s is not reported: %v", name, r.Renamed)
		}
	}
	for _, name := range r.Fresh {
		if strings.HasPrefix(name, "decoder/") {
			t.Errorf("%s is left at random", name)
		}
	}
	if s := r.String(); !strings.Contains(s, "from others of the checkpoint (decoder/") {
		t.Error(s)
	}
	// What the decoder starts from is used, although the model has no parameters of these names.
	for _, name := range r.Unused {
		if strings.HasPrefix(name, "text/") {
			t.Errorf("%s is called not used", name)
		}
	}
	if !slices.Contains(r.Unused, "itm_head/weight") {
		t.Errorf("the head of matching is used: %v", r.Unused)
	}

	fresh.must(t, 0)
	own := fresh.save(t, t.TempDir(), 1)
	again := small(t, 0, 0, append(captionSets, "run.seed=9")...)
	if r, err = InitModel(again.model, own, again.cfg.Model); err != nil || len(r.Renamed) > 0 || !slices.Equal(again.model.Params().Values(), p.Values()) {
		t.Errorf("a decoder does not go on from itself: %v, %v", r, err)
	}
}

// TestInitTunedDecoder: a decoder, which is not tuned, starts from what tuned fusion layers compute, although the layers themselves
// go on with what tunes them.
func TestInitTunedDecoder(t *testing.T) {
	s, c := trained(t, append(loraSets, "optimizer.lr=0.01")...)
	cfg, err := config.Load("../cmd/trainer/testdata/tiny.toml", slices.Concat(loraSets, captionSets, []string{"objective.captioning.weight=0", "objective.vqa.weight=1", "data.kind=vqa", "data.examples.source=scenes"}))
	if err != nil {
		t.Fatal(err)
	}
	engine := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: 1}))(t)
	defer engine.Close()
	asked := check.Get(NewModel(cfg, ModelOptions{Engine: engine, Tokenizer: s.tokenizer}))(t)
	defer asked.Close()
	r := check.Get(InitModel(asked, c, cfg.Model))(t)
	p, was := asked.Params(), s.model.Params()
	const layer, decoder = "text/layers/02/attention/qkv/", "decoder/layers/00/attention/qkv/weight"
	own, ok := was.Get(layer + "weight")
	down, tuned := was.Get(layer + "lora_a")
	up, _ := was.Get(layer + "lora_b")
	started, decodes := p.Get(decoder)
	kept, goesOn := p.Get(layer + "lora_b")
	if !ok || !tuned || !decodes || !goesOn {
		t.Fatal("parameters are missing: the test shows nothing")
	}
	for what, of := range map[string]func(p *model.Params, q *model.Param) []float32{"value": (*model.Params).Value, "twin": (*model.Params).MomentumValue} {
		if !slices.Equal(of(p, kept), of(was, up)) {
			t.Errorf("%s: the adapter of the fusion layer does not go on", what)
		}
		weight := slices.Clone(was.Value(own)) // which is locked and has no twin
		before := slices.Clone(weight)
		if model.MergeLoRA(weight, of(was, down), of(was, up), 2, 4); slices.Equal(weight, before) {
			t.Fatal("the adapter adds nothing: the test shows nothing")
		}
		if !slices.Equal(of(p, started), weight) {
			t.Errorf("%s: the decoder does not start from its fusion layer with the adapter", what)
		}
	}
	if !slices.Contains(r.Renamed, decoder) {
		t.Errorf("%s is not reported: %v", decoder, r.Renamed)
	}
}

// TestElsewhere: only parameters of downstream tasks start from others, and only from those of their shape: keys of images of
// another width than words do not fit keys of the states of questions.
func TestElsewhere(t *testing.T) {
	now := config.Model{Text: encoders.TextOptions{Layers: 2}}
	for name, want := range map[string]string{
		"decoder/layers/03/ffn/output/bias": "text/layers/05/ffn/output/bias", "decoder/mlm/bias": "text/mlm/bias",
		"text/layers/00/ffn/output/bias": "", "image/norm/weight": "",
	} {
		if got := elsewhere(name, now); got != want {
			t.Errorf("%s starts from %q, want %q", name, got, want)
		}
	}
	const from = "text/layers/02/crossattention/kv/weight"
	kept := map[string]weights.Param{from: {Name: from, Shape: []int{8, 3}}}
	for width, want := range map[int]bool{3: true, 4: false} {
		if _, ok := renamed(kept, &model.Param{Name: "decoder/layers/00/crossattention/kv/weight", Shape: tensor.Shape{8, width}}, now); ok != want {
			t.Errorf("keys of width %d are taken from those of width 3: %t", width, ok)
		}
	}
}
