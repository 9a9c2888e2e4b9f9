package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/model"
)

// loraSets adapt the tiny configuration, with dropout of the adapters.
var loraSets = []string{"model.lora.rank=2", "model.lora.alpha=8", "model.lora.dropout=0.2"}

// TestLoRAResume: a run with adapters starts from the parameters of one without, goes on from its
// own checkpoint with the same bits, and moves no parameter of a tower.
func TestLoRAResume(t *testing.T) {
	base, from := trained(t)
	whole := small(t, 0, 0, loraSets...)
	r, err := InitModel(whole.model, from, whole.cfg.Model)
	if err != nil || len(r.Fresh) == 0 || slices.ContainsFunc(r.Fresh, func(name string) bool { return !strings.Contains(name, "/lora_") }) || len(r.Unused) != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	for i := range 3 {
		whole.must(t, i)
	}
	moved := 0
	for _, q := range base.model.Params().List() {
		now, _ := whole.model.Params().Get(q.Name)
		tower := strings.HasPrefix(q.Name, "image/") || strings.HasPrefix(q.Name, "text/")
		if same := slices.Equal(whole.model.Params().Value(now), base.model.Params().Value(q)); tower && !same {
			t.Errorf("%s is trained", q.Name)
		} else if !same {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no head is trained")
	}
	sameResumed(t, whole, 3, loraSets...)
}

// TestLoRAInit: what starts from a checkpoint with adapters computes the same: the same adapters go on,
// and those of another form, or none, begin on weights that have taken them in. So do twins.
func TestLoRAInit(t *testing.T) {
	s, c := trained(t, append(loraSets, "optimizer.lr=0.01")...)
	const weight, bias = "text/layers/00/attention/qkv/weight", "text/layers/00/attention/qkv/bias"
	value := func(s *Session, name string) []float32 {
		q, ok := s.model.Params().Get(name)
		if !ok {
			t.Fatalf("no parameter %s", name)
		}
		return s.model.Params().Value(q)
	}
	merged, twin := slices.Clone(value(s, weight)), slices.Clone(value(s, weight))
	layer := strings.TrimSuffix(weight, "/weight")
	model.MergeLoRA(merged, value(s, layer+"/lora_a"), value(s, layer+"/lora_b"), 2, 4)
	twins := func(name string) []float32 {
		q, _ := s.model.Params().Get(layer + name)
		return s.model.Params().MomentumValue(q)
	}
	model.MergeLoRA(twin, twins("/lora_a"), twins("/lora_b"), 2, 4)
	if slices.Equal(merged, value(s, weight)) || slices.Equal(merged, twin) {
		t.Fatal("adapters add nothing, or twins equal them: the test shows nothing")
	}
	for _, c2 := range []struct {
		sets   []string
		merges bool
	}{
		{loraSets, false},
		{[]string{"model.lora.rank=2", "model.lora.alpha=8"}, false}, // without dropout they are the same
		{nil, true},
		{[]string{"model.lora.rank=3", "model.lora.alpha=12"}, true},
		{[]string{"model.lora.rank=2", "model.lora.alpha=4"}, true},
		{[]string{"model.text.freeze=true"}, true},
		{[]string{"model.lora.rank=2", "model.lora.alpha=8", "model.lora.layers=['image/blocks/*/attn/*']"}, true},
	} {
		next := small(t, 0, 0, c2.sets...)
		r, err := InitModel(next.model, c, next.cfg.Model)
		if err != nil {
			t.Fatalf("%v: %v", c2.sets, err)
		}
		want := value(s, weight)
		if c2.merges {
			want = merged
		}
		if !slices.Equal(value(next, weight), want) || slices.Contains(r.Merged, weight) != c2.merges || len(r.Unused) > 0 || !slices.Equal(value(next, bias), value(s, bias)) {
			t.Errorf("%v: %+v", c2.sets, r)
		}
		if c2.merges != strings.Contains(r.String(), " with tuning of the checkpoint merged (") {
			t.Errorf("%v: %s", c2.sets, r)
		}
		if q, _ := next.model.Params().Get(weight); q.Momentum && !slices.Equal(next.model.Params().MomentumValue(q), twin) {
			t.Errorf("%v: the EMA copy of %s lacks the twins of its adapter", c2.sets, weight)
		}
		if a, ok := next.model.Params().Get(layer + "/lora_a"); ok && !c2.merges && !slices.Equal(next.model.Params().Value(a), value(s, layer+"/lora_a")) {
			t.Errorf("%v: the adapter does not go on", c2.sets)
		}
	}
}
