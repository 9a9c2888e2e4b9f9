package train

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// trained returns a checkpoint of a session after some steps.
func trained(t *testing.T, sets ...string) (*Session, *checkpoint.Checkpoint) {
	t.Helper()
	s := small(t, 0, 0, sets...)
	for i := range 3 {
		s.must(t, i)
	}
	return s, s.save(t, t.TempDir(), 3)
}

func TestInitCopiesParametersAndTeacher(t *testing.T) {
	s, c := trained(t)
	fresh := small(t, 0, 0, "run.seed=8")
	r, err := InitModel(fresh.model, c, fresh.cfg.Model)
	if err != nil || r.Loaded != len(s.model.Params().List()) || len(r.Fresh)+len(r.Unused)+len(r.Resampled) != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	a, b := s.memory(), fresh.memory()
	if !slices.Equal(a["values"], b["values"]) || !slices.Equal(a["twins"], b["twins"]) {
		t.Error("the parameters or the twins differ from the checkpoint's")
	}
	for _, q := range fresh.model.Params().List() {
		if q.Momentum && !slices.Equal(fresh.model.Params().Value(q), fresh.model.Params().MomentumValue(q)) {
			return
		}
	}
	t.Error("the teacher equals the student, so the test shows nothing")
}

func TestInitWithoutATeacher(t *testing.T) {
	_, c := trained(t, "momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "objective.itc.weight=0")
	fresh := small(t, 0, 0)
	check.Get(InitModel(fresh.model, c, fresh.cfg.Model))(t)
	p := fresh.model.Params()
	for _, q := range p.List() {
		if q.Momentum && !slices.Equal(p.Value(q), p.MomentumValue(q)) {
			t.Errorf("the EMA copy of %s is not a copy", q.Name)
		}
	}
}

// At another image size the class row of the position table is kept and the grid is
// resampled; so is the teacher's.
func TestInitAtAnotherImageSize(t *testing.T) {
	s, c := trained(t)
	large := small(t, 0, 0, "model.image.size=32")
	r, err := InitModel(large.model, c, large.cfg.Model)
	if err != nil || !slices.Equal(r.Resampled, []string{"image/pos_embed"}) || !strings.Contains(r.String(), "1 resampled (image/pos_embed)") {
		t.Fatalf("%v %v", err, r)
	}
	a, _ := s.model.Params().Get("image/pos_embed")
	b, _ := large.model.Params().Get("image/pos_embed")
	if !b.Shape.Eq([]int{17, 32}) {
		t.Fatalf("shape %v", b.Shape)
	}
	for _, x := range [][2][]float32{
		{s.model.Params().Value(a), large.model.Params().Value(b)},
		{s.model.Params().MomentumValue(a), large.model.Params().MomentumValue(b)},
	} {
		if !slices.Equal(x[0][:32], x[1][:32]) {
			t.Error("the class row changed")
		}
	}
	large.must(t, 0)
}

func TestInitReportsWhatIsMissing(t *testing.T) {
	_, c := trained(t, "objective.mlm.weight=0", "model.text.fusion_layers=1")
	r, err := InitModel(small(t, 0, 0, "objective.itm.weight=0", "eval.rerank_top=0").model, c, config.Model{})
	if err != nil || len(r.Fresh) == 0 || !slices.Contains(r.Unused, "itm_head/weight") {
		t.Errorf("%v %+v", err, r)
	}
	if s := r.String(); !strings.Contains(s, "left at random (") || !strings.Contains(s, ", ...)") || !strings.Contains(s, "not used (itm_head/bias, itm_head/weight)") {
		t.Errorf("%s", s)
	}
}

func TestInitRefuses(t *testing.T) {
	_, c := trained(t)
	if _, err := InitModel(small(t, 0, 0, "model.text.width=64").model, c, config.Model{}); err == nil || !strings.Contains(err.Error(), "in this model: set [model] to the sizes of the checkpoint") {
		t.Errorf("another width: %v", err)
	}
	several := small(t, 0, 0, "model.head.topology=Multi(4,4)", "model.head.dim=16", "model.text.positions=64", "objective.tcl.local=false")
	if _, err := InitModel(several.model, c, config.Model{}); err == nil || !strings.Contains(err.Error(), "cls_token has shape [32]") || !strings.Contains(err.Error(), "set model.head.topology to one with the class tokens of the checkpoint") {
		t.Errorf("several class tokens: %v", err)
	}
	store := check.Get(checkpoint.NewStore(filepath.Join(t.TempDir(), "checkpoints"), checkpoint.Retention{}))(t)
	foreign, err := checkpoint.Take([]state.Part{state.Values{Name: "model", Memory: []state.Tensor{{Name: "w", Shape: []int{2}, Data: []float32{1, 2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	check.OK(t, store.Save(1, foreign))
	other := check.Get(checkpoint.Load(store.Dir()))(t)
	defer other.Close()
	check.Fails(InitModel(small(t, 0, 0).model, other, config.Model{}))(t, "no parameter of this model")
}
