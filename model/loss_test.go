package model_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/train"
)

// naming is a loss that no file of the framework knows: it tells the class of an image, a
// column that nothing else reads, from the features of its pair, through a layer that stays
// as it is in the first updates.
type naming struct {
	Weight  float64
	Classes int
	Freeze  int // first updates in which the layer stays as it is

	layer   [2]objectives.Values
	started []int // what Start was told
}

var (
	_ objectives.Preparer       = (*naming)(nil)
	_ objectives.Starter        = (*naming)(nil)
	_ objectives.GradientFilter = (*naming)(nil)
)

func (l *naming) Prepare(s *objectives.Step) { s.Reads.Online.Image.Features = true }

func (l *naming) Build(s *objectives.Step) []objectives.Part {
	logits := encoders.Classifier{Classes: l.Classes}.Forward(s.Params.In("naming"), s.Online.Image.Features, 1) // (B, K)
	labels := s.Column(batch.Column{Name: batch.Labels, Type: batch.Int32}, s.Rows)
	l.layer = [2]objectives.Values{s.Values("naming/weight"), s.Values("naming/bias")}
	part := s.Part("naming", l.Weight, contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: labels}))
	part.Chance = math.Log(float64(l.Classes))
	return []objectives.Part{part, {Name: "naming_accuracy", Node: contrast.Accuracy(logits, labels), Measure: true}}
}

func (l *naming) Start(update int) { l.started = append(l.started, update) }

func (l *naming) FilterGradients(update int) {
	if update < l.Freeze {
		for _, v := range l.layer {
			clear(v.Grad())
		}
	}
}

// TestALossOfItsOwn: a loss with a column, parameters and measures of its own is a part of the
// total, after those of the configuration or alone, and is trained.
func TestALossOfItsOwn(t *testing.T) {
	for _, alone := range []bool{false, true} {
		cfg := check.Get(config.Load("", []string{
			"model.system=heads", "model.heads.in_image=6", "model.heads.in_text=5", "model.heads.hidden=16", "model.head.dim=8",
			"momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "eval.rerank_top=0", "model.text.fusion_layers=0",
			"objective.itc.weight=0", "objective.itc.in_batch_weight=1", "objective.itm.weight=0", "objective.mlm.weight=0",
			"train.batch_size=8", "optimizer.lr=1e-2", "optimizer.decay=0",
		}))(t)
		names := []string{"itc_in_batch", "naming", "naming_accuracy"}
		if alone {
			cfg.Objective.ITC.InBatchWeight, names = 0, names[1:]
		}
		engine := check.Get(compute.New(compute.Options{Threads: 1}))(t)
		t.Cleanup(engine.Close)
		loss := &naming{Weight: 0.5, Classes: 4, Freeze: 3}
		m := check.Get(model.New(cfg, model.Options{Engine: engine, Losses: []objectives.Loss{loss}}))(t)
		if c, ok := batch.Find(m.Columns(), batch.Labels); !ok || c.Type != batch.Int32 {
			t.Errorf("the step does not read its labels: %v", m.Columns())
		}
		if chance := m.Chance(); chance[len(chance)-1].Name != "naming" || chance[len(chance)-1].Value != math.Log(4) {
			t.Errorf("chance %v", chance)
		}
		optimizer := check.Get(train.NewOptimizer(cfg.Optimizer, engine, m))(t)
		q, ok := m.Params().Get("naming/weight")
		if !ok || !m.Learnable(q.Name) || q.Momentum {
			t.Fatalf("the loss has no layer: %+v", q)
		}
		start := slices.Clone(m.Params().Value(q))
		r := rand.New(rand.NewPCG(3, 4))
		b := batch.New(8, m.Columns()...)
		accuracy := 0.
		for step := range 150 {
			for i := range b.Rows() {
				row := b.Row(i)
				row.Set(batch.Labels, int32(i%4))
				for k := range row.Floats(batch.ImageFeatures) {
					row.Floats(batch.ImageFeatures)[k] = float32(math.Sin(float64((i%4)*7+k))) + .2*float32(r.NormFloat64())
				}
				for k := range row.Floats(batch.TextFeatures) {
					row.Floats(batch.TextFeatures)[k] = float32(r.NormFloat64())
				}
			}
			check.OK(t, m.Before(step))
			res := check.Get(m.Step(t.Context(), &feed.Step{Batch: b, Update: step, Counter: step}))(t)
			var got []string
			total := 0.
			for _, p := range res.Parts {
				got = append(got, p.Name)
				switch p.Name {
				case "itc_in_batch":
					total += p.Value
				case "naming":
					total += 0.5 * p.Value
				case "naming_accuracy":
					accuracy = p.Value
				}
			}
			if !slices.Equal(got, names) || !(math.Abs(total-res.Loss) <= 1e-5*total) {
				t.Fatalf("parts %v of %v, want %v and a sum of %v", got, res.Loss, names, total)
			}
			if same := slices.Equal(m.Params().Value(q), start); same != (step <= 3) && step > 0 {
				t.Fatalf("before step %d the layer is as it was: %t", step, same)
			}
			optimizer.Step(cfg.Optimizer.LR, 1, optimizer.GradNorm(1))
			check.OK(t, m.After())
		}
		if accuracy != 1 {
			t.Errorf("an accuracy of %v after training", accuracy)
		}
		if n := len(loss.started); n != 151 || loss.started[0] != 0 || loss.started[n-1] != 149 {
			t.Errorf("Start was called %d times", n)
		}
	}
}
