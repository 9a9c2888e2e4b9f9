package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/model"
)

// tuningSets tune the tiny configuration by everything that stands beside its parameters.
var tuningSets = slices.Clip(append(loraSets, "model.tuning.adapter_width=3", "model.tuning.prompt_tokens=2", "model.tuning.prompt_deep=true", "model.tuning.ssf=true",
	"model.tuning.metric=block_diag", "model.tuning.metric_blocks=2"))

// TestTuningResume: a tuned run starts from the parameters of one that is not, goes on from its own checkpoint with the same bits, and moves no
// locked parameter.
func TestTuningResume(t *testing.T) {
	_, from := trained(t)
	for name, sets := range map[string][]string{"beside": tuningSets, "within": {"model.tuning.bitfit=true", "model.tuning.partial_blocks=1"}} {
		t.Run(name, func(t *testing.T) {
			whole := small(t, 0, 0, sets...)
			r, err := InitModel(whole.model, from, whole.cfg.Model)
			if err != nil || (len(r.Fresh) > 0) != (name == "beside") || len(r.Unused) != 0 || len(r.Merged) != 0 {
				t.Fatalf("%v %+v", err, r)
			}
			p, locked := whole.pairs().Params(), map[string][]float32{}
			for _, q := range p.List() {
				if q.Locked {
					locked[q.Name] = slices.Clone(p.Value(q))
				}
			}
			for i := range 3 {
				whole.must(t, i)
			}
			for _, q := range p.List() {
				if q.Locked && !slices.Equal(p.Value(q), locked[q.Name]) {
					t.Errorf("%s is trained", q.Name)
				}
			}
			sameResumed(t, whole, 3, sets...)
		})
	}
}

// TestTuningInit: what starts from a tuned checkpoint goes on with what it has in the same form, its weights and biases take in
// the rest, and bottlenecks and prompts that it lacks are told.
func TestTuningInit(t *testing.T) {
	s, c := trained(t, append(tuningSets, "optimizer.lr=0.01")...)
	const layer = "text/layers/00/attention/qkv"
	value := func(s *Session, name string) []float32 {
		q, ok := s.model.Params().Get(name)
		if !ok {
			return nil
		}
		return s.model.Params().Value(q)
	}
	of := func(name string) []float32 { return slices.Clone(value(s, layer+"/"+name)) }
	adapted := of("weight")
	down, metric := of("lora_a"), of("lora_metric")
	model.MergeMetric(down, metric, 2, len(metric)/(len(down)/2))
	model.MergeLoRA(adapted, down, of("lora_b"), 2, 4)
	merged, bias := slices.Clone(adapted), of("bias")
	model.MergeSSF(merged, bias, of("ssf_scale"), of("ssf_shift"))
	if slices.Equal(adapted, of("weight")) || slices.Equal(merged, adapted) || slices.Equal(bias, of("bias")) {
		t.Fatal("nothing has moved: the test shows nothing")
	}
	for _, x := range []struct {
		sets         []string
		weight, bias []float32
		unused       bool
	}{
		{tuningSets, of("weight"), of("bias"), false},
		{append(tuningSets, "model.tuning.ssf=false"), merged, bias, false},
		{append(tuningSets, "model.tuning.metric=diag", "model.tuning.adapter_width=0"), adapted, of("bias"), true},
		{[]string{"model.tuning.ssf=true"}, adapted, of("bias"), true},
		{[]string{"model.tuning.bitfit=true"}, merged, bias, true},
		{nil, merged, bias, true},
	} {
		next := small(t, 0, 0, x.sets...)
		r, err := InitModel(next.model, c, next.cfg.Model)
		if err != nil {
			t.Fatalf("%v: %v", x.sets, err)
		}
		changed := !slices.Equal(x.weight, of("weight"))
		if !slices.Equal(value(next, layer+"/weight"), x.weight) || !slices.Equal(value(next, layer+"/bias"), x.bias) || slices.Contains(r.Merged, layer+"/weight") != changed {
			t.Errorf("%v: %s", x.sets, r)
		}
		if dropped := slices.ContainsFunc(r.Unused, func(n string) bool { return strings.Contains(n, "/adapter/") || strings.HasSuffix(n, "/prompts") }); dropped != x.unused {
			t.Errorf("%v: %s", x.sets, r)
		}
		for _, q := range next.model.Params().List() {
			was, ok := s.model.Params().Get(q.Name)
			if ok && q.Added && q.Momentum && slices.Equal(was.Shape, q.Shape) && !changed && !slices.Equal(next.model.Params().MomentumValue(q), s.model.Params().MomentumValue(was)) {
				t.Errorf("%v: the EMA copy of %s does not go on", x.sets, q.Name)
			}
		}
		if scale := value(next, layer+"/ssf_scale"); scale != nil && !slices.Equal(scale, of("ssf_scale")) {
			t.Errorf("%v: the scale does not go on", x.sets)
		}
	}
}
