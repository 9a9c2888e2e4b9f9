package train

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/train/optim"
	"github.com/geoalign/geoalign/train/schedule"
)

// named returns a measure of a step.
func (r StepResult) named(t *testing.T, name string) float64 {
	t.Helper()
	for _, p := range r.Parts {
		if p.Name == name {
			if !p.Measure {
				t.Errorf("%s is a part of the loss", name)
			}
			return p.Value
		}
	}
	t.Fatalf("no %s among %v", name, r.Parts)
	return 0
}

// TestMomentumOrientation moves a twin of 0 towards a parameter of 1 with .995: ALBEF's momentum keeps the twin, and
// brings it to .005; the momentum that ViPMM prints is the share of the parameter, and brings it to .995.
func TestMomentumOrientation(t *testing.T) {
	engine := check.Get(kernel.New(kernel.Options{Threads: 1}))(t)
	t.Cleanup(engine.Close)
	for _, c := range []struct {
		name string
		m    float64
		want float32
	}{
		{"static", schedule.Momentum(9, 0.995, 0), 0.005},
		{"dynamic", schedule.DynamicMomentum(0.995, false), 0.995},
		{"dynamic_teacher", schedule.DynamicMomentum(0.995, true), 0.005},
	} {
		params, twin := []float32{1}, []float32{0}
		o, err := optim.New(engine, params, []float32{0}, []optim.Segment{{Name: "theta", Len: 1, Rate: 1}}, optim.Settings{Eps: 1e-8})
		if err != nil {
			t.Fatal(err)
		}
		check.OK(t, o.SetTwins([]optim.Twin{{Values: twin}}))
		o.StepTwins(0, 1, 0, c.m)
		if d := twin[0] - c.want; !(math.Abs(float64(d)) <= 1e-7) {
			t.Errorf("%s: the twin is %v, want %v", c.name, twin[0], c.want)
		}
	}
}

// TestDynamicMomentumMovesTheTwins: all twins of towers and heads move by the logged online weight, which is the mean cosine
// of the texts or what is left of it, and a resumed run has the same.
func TestDynamicMomentumMovesTheTwins(t *testing.T) {
	for _, rule := range []string{objectives.MomentumDynamic, objectives.MomentumDynamicTeacher} {
		sets := []string{"momentum.rule=" + rule, "model.head.style=mlp", "train.batch_size=4", "train.accumulate_steps=2"}
		s := small(t, 0, 0, sets...)
		p := s.pairs().Params()
		for i := range 3 {
			before := s.memory()["twins"]
			r := s.must(t, i)
			w, cosine := r.named(t, "online_weight"), s.pairs().TextAgreement()
			if rule == objectives.MomentumDynamicTeacher {
				cosine = 1 - cosine
			}
			// Dropout makes the texts of a twin others, even where it is a copy.
			if !(math.Abs(w-cosine) <= 1e-7) || w <= 0 || w >= 1 {
				t.Errorf("%s, step %d: online weight %v, by the texts %v", rule, i, w, cosine)
			}
			heads := 0
			p.MomentumRuns(func(offset int, twin []float32) {
				for k, got := range twin {
					theta := float64(p.Values()[offset+k])
					want := w*theta + (1-w)*float64(before[k])
					if !(math.Abs(float64(got)-want) <= 1e-6*(1+math.Abs(want))) {
						t.Fatalf("%s, step %d: twin %d is %v, want %v", rule, i, k, got, want)
					}
				}
				before = before[len(twin):]
			})
			for _, q := range p.List() {
				if strings.HasPrefix(q.Name, "text_proj/fc") && q.Momentum {
					heads++
				}
			}
			if heads != 4 {
				t.Errorf("%d parameters of the text head have a twin, want 4", heads)
			}
		}
		ck := s.save(t, t.TempDir(), 3)
		again := small(t, 0, 0, sets...)
		check.Get(again.Restore(ck))(t)
		if want, got := s.must(t, 3), again.must(t, 3); !slices.Equal(got.Parts, want.Parts) || !slices.Equal(again.memory()["twins"], s.memory()["twins"]) {
			t.Errorf("%s: a resumed run goes on otherwise: %v, uninterrupted %v", rule, got.Parts, want.Parts)
		}
	}
}

// TestAgreementThatIsNotFinite: texts of the teacher that have no cosine are an error that names the step and changes
// nothing, also where no loss reads the teacher.
func TestAgreementThatIsNotFinite(t *testing.T) {
	s := small(t, 0, 0, "momentum.rule=dynamic", "model.system=clip", "model.text.fusion_layers=0", "queue.size=0", "objective.distill.alpha=0",
		"objective.itc.weight=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0")
	s.must(t, 0)
	s.pairs().Params().MomentumRuns(func(_ int, twin []float32) { twin[len(twin)-1] = float32(math.NaN()) })
	before := s.memory()
	_, err := s.Step(t.Context(), 1)
	var bad *NonFiniteError
	if !errors.As(err, &bad) || bad.Step != 1 || !strings.Contains(err.Error(), "momentum.rule") {
		t.Fatalf("got %v", err)
	}
	for name, x := range s.memory() {
		if !sameFloats(x, before[name]) {
			t.Errorf("%s changed", name)
		}
	}
}

// sameFloats compares bits, so that a NaN is itself.
func sameFloats(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
