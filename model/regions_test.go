package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/train"
	"gorgonia.org/gorgonia"
)

// regionTower encodes an image that a detector has cut into regions, each with a row of
// features: a class token and one block of attention over them. It is a tower that no file
// of the framework knows: this one says what it reads, its shapes and its parameters.
type regionTower struct {
	Regions, In  int // most regions of an image, and D, the features of one
	Width, Heads int
}

const (
	regions       = "regions"         // (R, D) float32
	regionLengths = "regions/lengths" // () int32, regions of an image
)

func (r regionTower) Columns() []batch.Column {
	return []batch.Column{{Name: regions, Shape: []int{r.Regions, r.In}}, {Name: regionLengths, Type: batch.Int32}}
}

func (r regionTower) Classes() int               { return 1 }
func (r regionTower) Shape() (length, width int) { return 1 + r.Regions, r.Width }

func (r regionTower) Encode(_ *encoders.Context, s encoders.Scope, in encoders.Inputs, want encoders.Want) encoders.Sequence {
	n, l, d := in[regions].Shape()[0], 1+r.Regions, r.Width
	x := r.linear(s, "embed", layout.Reshape(in[regions], n*r.Regions, r.In), d)  // (n*R, d)
	x = nn.PrependToken(x, s.Param("class", encoders.Normal(0.02), d), r.Regions) // (n*L, d)
	q := encoders.Sequence{Lengths: layout.AddInt(in[regionLengths], 1), Len: l, Width: d}
	h := attention.SelfAttention(attention.SelfArgs{QKV: r.linear(s, "qkv", x, 3*d), Lengths: q.Lengths, Len: l, Heads: r.Heads, Keep: 1})
	q.Tokens = arith.Add(x, r.linear(s, "out", h, d)) // (n*L, d)
	if want.Classes {
		q.Classes = q.First(n)
	}
	return q
}

func (r regionTower) linear(s encoders.Scope, name string, x *gorgonia.Node, out int) *gorgonia.Node {
	s, in := s.In(name), x.Shape()[1]
	bias := s.As(encoders.Traits{Group: encoders.GroupBias}).Param("bias", encoders.Zeros, out)
	return nn.Linear(x, s.Param("weight", encoders.LinearDefault(in), out, in), bias)
}

const regionBatch = 6

// regionModel returns a system whose images are regions.
func regionModel(t testing.TB, sets ...string) (*model.Trainer, config.Config, *compute.Engine) {
	t.Helper()
	cfg := check.Get(config.Load("", append([]string{
		"model.system=clip", "model.text.layers=1", "model.text.width=16", "model.text.heads=2", "model.text.positions=8", "model.head.dim=8",
		"data.tokens=6", fmt.Sprintf("train.batch_size=%d", regionBatch), "optimizer.lr=3e-3", "queue.size=12", "momentum.m=0.9",
		"objective.itc.in_batch_weight=1", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0",
		"objective.distill.alpha=0.2", "model.text.fusion_layers=0",
	}, sets...)))(t)
	engine := check.Get(compute.New(compute.Options{Threads: 2}))(t)
	t.Cleanup(engine.Close)
	m, err := model.New(cfg, model.Options{Engine: engine, Vocab: 20, MaskID: 4, Image: regionTower{Regions: 4, In: 5, Width: 12, Heads: 3}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, cfg, engine
}

// regionRows fills b with images of one to four noisy regions that show the word of the caption.
func regionRows(b *batch.Batch, r *rand.Rand) {
	for i := range b.Rows() {
		row, count := b.Row(i), 1+r.IntN(4)
		row.Set(regionLengths, int32(count))
		for k := range count {
			for d := range 5 {
				row.Floats(regions)[k*5+d] = float32(math.Sin(float64(7*i+d))) + .1*float32(r.NormFloat64())
			}
		}
		row.Set(batch.IDs, int32(i))
		row.Set(batch.Lengths, 2)
		copy(row.Ints(batch.Tokens), []int32{2, int32(10 + i), 0, 0, 0, 0})
	}
}

// TestATowerOfItsOwnTrains: a modality that this test alone knows is trained with teacher,
// queue, the geometric term and, in a system with fusion layers, matching and masked
// language modelling, learns, and is evaluated like any other.
func TestATowerOfItsOwnTrains(t *testing.T) {
	for name, sets := range map[string][]string{
		"clip": {"objective.geometric.weight=0.1", "objective.geometric.neighbours=3", "objective.geometric.pool=2"},
		"albef": {
			"model.system=albef", "model.text.fusion_layers=1", "objective.itm.weight=1", "objective.mlm.weight=1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, cfg, engine := regionModel(t, sets...)
			for _, c := range []string{regions, regionLengths, batch.Tokens, batch.Lengths, batch.IDs} {
				if _, ok := batch.Find(m.Columns(), c); !ok {
					t.Errorf("the step does not read %s: %v", c, m.Columns())
				}
			}
			if q, ok := m.Params().Get("image/qkv/weight"); !ok || !q.Momentum || !m.Learnable(q.Name) {
				t.Error("the tower's parameters must be learned and have twins")
			}
			optimizer := check.Get(train.NewOptimizer(cfg.Optimizer, engine, m))(t)
			r := rand.New(rand.NewPCG(1, 2))
			b := batch.New(regionBatch, m.Columns()...)
			var first, last float64
			for step := range 300 {
				regionRows(b, r)
				check.OK(t, m.Before(step))
				res := check.Get(m.Step(t.Context(), &feed.Step{Batch: b, Update: step, Counter: step}))(t)
				for _, p := range res.Parts {
					if p.Name == "itc_in_batch" {
						if last = p.Value; step == 0 {
							first = p.Value
						}
					}
				}
				optimizer.StepTwins(cfg.Optimizer.LR, 1, optimizer.GradNorm(1), cfg.Momentum.M)
				check.OK(t, m.After())
			}
			if !(last < 0.2*first) {
				t.Errorf("the contrast went from %v to %v", first, last)
			}
			regionEncoding(t, m, b, r)
		})
	}
}

// regionEncoding: what lies behind an image's regions does not matter, nor does the rest of
// the batch, and a column that is missing is named.
func regionEncoding(t *testing.T, m *model.Trainer, b *batch.Batch, r *rand.Rand) {
	t.Helper()
	states, features, err := m.Image().Encode(t.Context(), b)
	if err != nil || len(states) != regionBatch*5*12 || len(features) != regionBatch*8 {
		t.Fatalf("%d states, %d features, %v", len(states), len(features), err)
	}
	want := slices.Clone(features)
	for i := range regionBatch {
		row := b.Row(i)
		for k := int(row.Ints(regionLengths)[0]) * 5; k < 4*5; k++ {
			row.Floats(regions)[k] = float32(r.NormFloat64())
		}
	}
	if _, features, err = m.Image().Encode(t.Context(), b); err != nil || !slices.Equal(features, want) {
		t.Errorf("padding changes features (%v)", err)
	}
	one := batch.New(1, m.Image().Columns()...)
	one.Row(0).Copy(b.Row(2))
	_, features = check.Get2(m.Image().Encode(t.Context(), one))(t)
	for i, v := range features {
		if !(math.Abs(float64(v-want[2*8+i])) <= 1e-5) {
			t.Errorf("channel %d is %v alone and %v in a batch", i, v, want[2*8+i])
		}
	}
	if _, _, err := m.Image().Encode(t.Context(), batch.New(2, batch.Column{Name: regions, Shape: []int{4, 5}})); err == nil || !strings.Contains(err.Error(), "regions/lengths: got 0 values") {
		t.Errorf("without lengths: %v", err)
	}
}
