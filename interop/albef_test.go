package interop

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/train"
)

// The model of albef_step.py.
const (
	rows, words, dim, queued = 3, 5, 8, 6
	vocab, maskID            = 24, 4
	rate, momentum           = 1e-4, 0.995
)

// sets is its configuration, with the reference's rule of weight decay.
var sets = []string{
	"model.image.size=8", "model.image.patch=4", "model.image.depth=2", "model.image.width=8", "model.image.heads=2",
	"model.text.layers=2", "model.text.fusion_layers=1", "model.text.width=12", "model.text.heads=2",
	"model.text.positions=7", "model.text.dropout=0", "model.head.dim=8", "queue.size=6", "train.batch_size=3",
	"data.tokens=5", "momentum.m=0.995", "objective.distill.alpha=0.4", "objective.distill.ramp_epochs=0",
	"objective.itc.temperature=0.01", "objective.mlm.prob=0.4", "optimizer.decay=0.1",
	"optimizer.no_decay=['bias', '1d']",
}

// reference is what albef_step.py wrote.
type reference struct {
	t *testing.T
	f *safetensors.File
}

func openReference(t *testing.T) reference {
	t.Helper()
	f, err := safetensors.Open("testdata/albef_step.safetensors")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%v: interop/albef_step.py writes it", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return reference{t, f}
}

// floats returns the tensors of names, which the prefix stands before, one after the other.
func (r reference) floats(prefix string, names ...string) (all []float32) {
	r.t.Helper()
	for _, name := range names {
		x := check.Get(r.f.Float32(prefix + name))(r.t)
		all = append(all, x...)
	}
	return all
}

func (r reference) ints(name string) (all []int32) {
	r.t.Helper()
	x := check.Get(r.f.Int64(name))(r.t)
	for _, v := range x {
		all = append(all, int32(v))
	}
	return all
}

// param returns what a parameter, or its momentum copy, is in the reference.
func (r reference) param(prefix, name string, twin bool) []float32 {
	r.t.Helper()
	names := check.Get(published(name, twin))(r.t)
	return r.floats(prefix, names...)
}

// queue returns the features (queued, dim) of one of its queues, which are (dim, queued) there.
func (r reference) queue(name string) []float32 {
	x := r.floats("", name)
	rows := make([]float32, len(x))
	for c := range dim {
		for i := range queued {
			rows[i*dim+c] = x[c*queued+i]
		}
	}
	return rows
}

// batch returns the batch of the reference.
func (r reference) batch(columns []batch.Column) *batch.Batch {
	b := batch.New(rows, columns...)
	copy(b.Floats(batch.Images), r.floats("batch/", "images"))
	copy(b.Ints(batch.Tokens), r.ints("batch/ids"))
	copy(b.Ints(batch.Lengths), r.ints("batch/lengths"))
	return b
}

// masking returns the first number of a step, from start on, whose draw masks the captions of b
// as the reference's: the masks of a step follow from its number.
func (r reference) masking(cfg config.Config, b *batch.Batch, start int) int {
	r.t.Helper()
	tokens, labels := r.ints("batch/masked"), r.ints("batch/labels")
	var places, wanted []int32
	for p, l := range labels {
		if l >= 0 {
			places, wanted = append(places, int32(p)), append(wanted, l)
		}
	}
	k := objectives.Masker{Prob: cfg.Objective.MLM.Prob, Vocab: vocab, MaskID: maskID,
		Capacity: objectives.MaskCapacity(rows, words, cfg.Objective.MLM.Prob)}
	var m objectives.Masked
	for n := start; n < start+1e7; n++ {
		s := feed.Step{Counter: n}
		check.OK(r.t, k.Apply(rng.New(cfg.Run.Seed, rng.Mask, s.Stream()), b.Ints(batch.Tokens), b.Ints(batch.Lengths),
			&m))
		if m.Count == len(places) && slices.Equal(m.Tokens, tokens) && slices.Equal(m.Positions[:m.Count], places) &&
			slices.Equal(m.Labels[:m.Count], wanted) {
			return n
		}
	}
	r.t.Fatal("no step masks the captions so: the law of the masks has changed")
	return 0
}

// TestStepOfThePublishedLayout loads weights by the names of ALBEF's checkpoints, makes one
// update, and compares with an independent PyTorch step: losses and gradients, then parameters,
// momentum encoder and queue after the update, and the losses of the next forward pass.
func TestStepOfThePublishedLayout(t *testing.T) {
	r := openReference(t)
	cfg := check.Get(config.Load("", sets))(t)
	engine := check.Get(compute.New(compute.Options{Threads: 2}))(t)
	t.Cleanup(engine.Close)
	m := check.Get(model.New(cfg, model.Options{Engine: engine, Vocab: vocab, MaskID: maskID}))(t)
	t.Cleanup(func() { m.Close() })
	load(r, m)

	b := r.batch(m.Columns())
	step := r.masking(cfg, b, 0)
	first := forward(t, m, b, step)
	r.losses("first/", first)
	for _, q := range m.Params().List() {
		r.near("gradient of "+q.Name, m.Params().Grad(q), r.param("grad/", q.Name, false), 1e-4)
	}

	optimizer := check.Get(train.NewOptimizer(cfg.Optimizer, engine, m))(t)
	optimizer.StepTwins(rate, 1, optimizer.GradNorm(1), momentum)
	check.OK(t, m.After())
	for _, q := range m.Params().List() {
		grad, wantGrad := m.Params().Grad(q), r.param("grad/", q.Name, false) // alike, see above
		r.moved(q.Name, m.Params().Value(q), grad, wantGrad, r.param("after/", q.Name, false), 1e-3*rate)
		if q.Momentum {
			r.moved("twin of "+q.Name, m.Params().MomentumValue(q), grad, wantGrad, r.param("after/", q.Name, true),
				1e-3*rate)
		}
	}

	r.losses("second/", forward(t, m, b, r.masking(cfg, b, step+1)))
	check.OK(t, m.After())
	r.near("image queue", m.Queue().Image, r.queue("after/image_queue"), 1e-5)
	r.near("text queue", m.Queue().Text, r.queue("after/text_queue"), 1e-5)
	if at := r.ints("after/queue_ptr")[0]; int(at) != m.Queue().Pointer {
		t.Errorf("the queue's pointer is %d, want %d", m.Queue().Pointer, at)
	}
}

// load gives m the reference's parameters, its full queues, and its momentum encoder as they are in the
// first forward pass, which moves them before it reads them; here an update moves them.
func load(r reference, m *model.Trainer) {
	p := m.Params()
	used := 0
	for _, q := range p.List() {
		used += copy(p.Value(q), r.param("before/", q.Name, false))
		if q.Momentum {
			twin := p.MomentumValue(q)
			used += copy(twin, r.param("before/", q.Name, true))
			for i, v := range p.Value(q) {
				twin[i] = momentum*twin[i] + (1-momentum)*v
			}
		}
	}
	queue := m.Queue()
	used += copy(queue.Image, r.queue("before/image_queue")) + copy(queue.Text, r.queue("before/text_queue"))
	queue.Filled, queue.Pointer = queued, int(r.ints("before/queue_ptr")[0])
	all := -1 // queue_ptr
	for _, x := range r.f.Tensors() {
		if strings.HasPrefix(x.Name, "before/") {
			n := 1
			for _, d := range x.Shape {
				n *= d
			}
			all += n
		}
	}
	if used != all {
		r.t.Errorf("the checkpoint has %d numbers, of which %d were loaded", all, used)
	}
}

// forward returns the parts of the loss of a step.
func forward(t *testing.T, m *model.Trainer, b *batch.Batch, counter int) map[string]float64 {
	t.Helper()
	res := check.Get(m.Step(t.Context(), &feed.Step{Batch: b, Counter: counter}))(t)
	parts := map[string]float64{}
	for _, p := range res.Parts {
		parts[p.Name] = p.Value
	}
	return parts
}

// losses compares the parts of a loss to 1e-5.
func (r reference) losses(prefix string, got map[string]float64) {
	r.t.Helper()
	for _, name := range []string{"itc", "itm", "mlm"} {
		if want := float64(r.floats(prefix, name)[0]); !(math.Abs(got[name]-want) <= 1e-5*want) {
			r.t.Errorf("%s%s is %v, want %v", prefix, name, got[name], want)
		}
	}
}

// near compares to a share of the largest element.
func (r reference) near(what string, got, want []float32, share float64) {
	r.t.Helper()
	if len(got) != len(want) {
		r.t.Errorf("%s has %d numbers, want %d", what, len(got), len(want))
		return
	}
	most := largest(want)
	for i, v := range want {
		if !(math.Abs(float64(got[i]-v)) <= share*most) {
			r.t.Errorf("%s: element %d is %v, want %v (of at most %v)", what, i, got[i], v, most)
			return
		}
	}
}

// largest returns the largest size of an element.
func largest(x []float32) (most float64) {
	for _, v := range x {
		most = max(most, math.Abs(float64(v)))
	}
	return most
}

// moved compares what an update made of a parameter. A first update of AdamW is the rate in the
// direction of the gradient, so elements say nothing whose gradient is zero in exact arithmetic
// and the noise of rounding here or there, such as the biases of keys. No gradient in both, as of
// rows that are not read, is decay alone.
func (r reference) moved(what string, got, grad, wantGrad, want []float32, tolerance float64) {
	r.t.Helper()
	noise := 3e-5 * largest(grad)
	for i, v := range want {
		if g := max(math.Abs(float64(grad[i])), math.Abs(float64(wantGrad[i]))); g != 0 && g < noise {
			continue
		}
		if !(math.Abs(float64(got[i]-v)) <= tolerance+1e-7*math.Abs(float64(v))) {
			r.t.Errorf("%s: element %d became %v, want %v", what, i, got[i], v)
			return
		}
	}
}
