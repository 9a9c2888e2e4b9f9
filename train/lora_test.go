package train

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// loraSets adapt the tiny configuration, with dropout of the adapters.
var loraSets = []string{"model.lora.rank=2", "model.lora.alpha=8", "model.lora.dropout=0.2"}

// TestLoRAResume: a run with adapters starts from the parameters of one without, goes on from its
// own checkpoint with the same bits, and moves no parameter of a tower.
func TestLoRAResume(t *testing.T) {
	base, from := trained(t)
	whole := small(t, 0, 0, loraSets...)
	r, err := InitModel(whole.model, from)
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
	ck := whole.save(t, t.TempDir(), 3)
	again := small(t, 0, 0, loraSets...)
	if _, err := again.Restore(ck); err != nil {
		t.Fatal(err)
	}
	for i := 3; i < 6; i++ {
		want, got := whole.must(t, i), again.must(t, i)
		if math.Float64bits(got.Loss) != math.Float64bits(want.Loss) || !slices.Equal(got.Parts, want.Parts) {
			t.Errorf("step %d after a resume: %v, uninterrupted %v", i, got.Loss, want.Loss)
		}
	}
	sameMemory(t, "resumed", again.state(), whole.state())
}
