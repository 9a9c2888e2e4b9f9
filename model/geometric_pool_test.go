package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
)

// memoryPool is a pool in memory.
type memoryPool struct {
	width int
	data  []float32
}

func (p memoryPool) Rows() int  { return len(p.data) / p.width }
func (p memoryPool) Width() int { return p.width }
func (p memoryPool) Row(i int, dst []float32) error {
	copy(dst, p.data[i*p.width:])
	return nil
}

// geraHeads is tinyHeads with the geometric term of both sides, neighbourhoods of 4 points.
func geraHeads() config.Config {
	c := tinyHeads()
	c.Objective.Geometric = objectives.Geometric{Weighted: section.Weigh(0.5), Modalities: "both", Neighbours: 4, Pool: 2, Sampling: "biased", Search: "exact", Kernel: "heat", Epsilon: 0.8, Scale: "unit"}
	return c
}

// deepGera has what a head can have: depth, skips, norms and dropout.
func deepGera() config.Config {
	c := geraHeads()
	c.Model.Heads = encoders.FeatureHeads{InImage: 6, InText: 4, Layers: 3, Hidden: 6, Activation: "silu", Dropout: 0.3, Residual: true, LayerNorm: true}
	c.Objective.Geometric.Chunk = 8
	return c
}

// poolsOf are pools of 12 random rows for the heads of cfg, and rows of them for a batch.
func poolsOf(cfg config.Config) (image, text memoryPool, near func() []int32) {
	r := rand.New(rand.NewPCG(71, 1))
	pool := func(width int) memoryPool {
		p := memoryPool{width, make([]float32, 12*width)}
		for i := range p.data {
			p.data[i] = float32(r.NormFloat64())
		}
		return p
	}
	return pool(cfg.Model.Heads.InImage), pool(cfg.Model.Heads.InText), func() (rows []int32) {
		for range cfg.Train.BatchSize {
			for _, row := range r.Perm(12)[:cfg.Objective.Geometric.Neighbours] {
				rows = append(rows, int32(row))
			}
		}
		return rows
	}
}

// buildGera is a model over random pools with a batch for it.
func buildGera(t testing.TB, cfg config.Config, e *kernel.Engine) (*Trainer, Batch) {
	t.Helper()
	image, text, near := poolsOf(cfg)
	m := newTrainer(t, cfg, Options{Engine: e, ImagePool: image, TextPool: text})
	f := randomFeatures(cfg, 6)
	f.ImageNeighbours, f.TextNeighbours = near(), near()
	return m, f
}

// TestGoldenGeometricPool compares a step of heads with the geometric term of both sides with
// an independent PyTorch implementation: losses to 1e-5, every gradient by name to 1e-4 of its
// largest element, in one chunk and in several.
func TestGoldenGeometricPool(t *testing.T) {
	g := openGolden(t, "heads_gera")
	for _, chunk := range []int{0, 4, 8} {
		t.Run(fmt.Sprint("chunk ", chunk), func(t *testing.T) {
			cfg := geraHeads()
			cfg.Objective.Geometric.Chunk = chunk
			h := newTrainer(t, cfg, Options{Engine: newEngine(t), ImagePool: memoryPool{6, g.floats("input/image_pool")}, TextPool: memoryPool{4, g.floats("input/text_pool")}})
			g.give(h)
			res := forward(t, h, g.batch(h), Control{})
			noneOnHost(t, h.step.machine)
			if got := partsOf(res); len(got) != 3 {
				t.Errorf("parts %v, want itc_in_batch, geometric_image and geometric_text", got)
			}
			g.result(h, res)
		})
	}
}

// TestGeometricPoolDifferences holds the gradient of a deep head against finite differences.
func TestGeometricPoolDifferences(t *testing.T) {
	cfg := deepGera()
	cfg.Objective.Geometric.Weight, cfg.Objective.ITC.InBatchWeight = 100, 1e-3
	h, f := buildGera(t, cfg, newEngine(t))
	loss := func() float64 {
		return forward(t, h, f, Control{Step: 3}).Loss
	}
	loss()
	grads := slices.Clone(h.params.Grads())
	for _, q := range h.params.List() {
		want := grads[q.offset:][:q.Len()]
		largest := 0.0
		for _, v := range want {
			largest = max(largest, math.Abs(float64(v)))
		}
		x := h.params.Value(q)
		for i := 0; i < len(x); i += max(1, len(x)/5) {
			const eps = 4e-3
			old := x[i]
			x[i] = old + eps
			up := loss()
			x[i] = old - eps
			down := loss()
			x[i] = old
			got := (up - down) / (2 * eps)
			if !(math.Abs(got-float64(want[i])) <= 2e-2*max(largest, 0.05)) {
				t.Errorf("gradient of %s[%d]: got %v, finite differences %v", q.Name, i, want[i], got)
			}
		}
	}
}

// TestGeometricPoolChunks: objective.geometric.chunk changes numbers by rounding alone, with
// dropout too.
func TestGeometricPoolChunks(t *testing.T) {
	cfg := deepGera()
	var want []float32
	for _, chunk := range []int{0, 4, 12, 16} {
		cfg.Objective.Geometric.Chunk = chunk
		h, f := buildGera(t, cfg, newEngine(t))
		forward(t, h, f, Control{Step: 7})
		if want == nil {
			want = slices.Clone(h.params.Grads())
		}
		near(t, fmt.Sprintf("chunk %d: gradients", chunk), h.params.Grads(), want, 1e-5)
	}
}

// TestGeometricPoolBF16: with products in bfloat16 losses are near those of float32, at other
// weights too, which the heads read in bfloat16 where the model keeps them so.
func TestGeometricPoolBF16(t *testing.T) {
	e := engineOf(t, kernel.Options{Threads: 2, Precision: "bf16"})
	cfg := deepGera()
	full, f := buildGera(t, cfg, newEngine(t))
	half, _ := buildGera(t, cfg, e)
	for step := range 2 {
		want := forward(t, full, f, Control{Step: 1})
		parts := slices.Clone(want.Parts)
		got := forward(t, half, f, Control{Step: 1})
		for i, p := range got.Parts {
			if d := math.Abs(p.Value/parts[i].Value - 1); !(d < 0.02) || d == 0 {
				t.Errorf("step %d: %s is %v, in float32 %v", step, p.Name, p.Value, parts[i].Value)
			}
		}
		for _, m := range []*Trainer{full, half} {
			for _, q := range m.params.List() {
				if q.Name != temperatureName {
					for i := range m.params.Value(q) {
						m.params.Value(q)[i] *= 1.5
					}
				}
			}
		}
	}
}

// TestGeometricPoolAllocates: chunks allocate nothing.
func TestGeometricPoolAllocates(t *testing.T) {
	h, f := buildGera(t, deepGera(), newEngine(t))
	s := h.feed(f, Control{Step: 1})
	n := testing.AllocsPerRun(20, func() {
		stepOf(t, h, s)
	})
	if n > 8 { // as TestHeadsAllocate
		t.Errorf("a step allocates %v times", n)
	}
}

// countdown is a context that is done when it is looked at for the nth time.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestGeometricPoolEnds: a step ends between two chunks, and within one.
func TestGeometricPoolEnds(t *testing.T) {
	h, f := buildGera(t, deepGera(), newEngine(t))
	s := h.feed(f, Control{Step: 1})
	whole := &countdown{t.Context(), 1 << 30}
	check.Get(h.Step(whole, s))(t)
	looks := 1<<30 - whole.left
	if nodes := h.Machine().Nodes(); looks < nodes+100 {
		t.Errorf("a step of %d nodes looks at its context %d times: not within the chunks", nodes, looks)
	}
	for _, n := range []int{looks / 4, looks / 2} {
		if _, err := h.Step(&countdown{t.Context(), n}, s); !errors.Is(err, context.Canceled) {
			t.Errorf("look %d of %d: %v", n, looks, err)
		}
	}
}

// TestGeometricPoolNaN: compute.check_nan names the op of a chunk.
func TestGeometricPoolNaN(t *testing.T) {
	cfg := geraHeads()
	cfg.Compute.CheckNaN = true
	image, text, near := poolsOf(cfg)
	for i := range image.data {
		image.data[i] = 3e38
	}
	h := newTrainer(t, cfg, Options{Engine: newEngine(t), ImagePool: image, TextPool: text})
	weight, _ := h.params.Get("image_head/fc1/weight")
	for i := range h.params.Value(weight) { // or the sums are finite
		h.params.Value(weight)[i] = 2
	}
	f := randomFeatures(cfg, 6)
	f.ImageNeighbours, f.TextNeighbours = near(), near()
	_, err := h.Forward(f, Control{})
	if bad, ok := errors.AsType[*exec.NonFiniteError](err); !ok || !strings.HasPrefix(bad.Op, "linear") || !strings.Contains(err.Error(), "geometric pool") {
		t.Errorf("got %v", err)
	}
}

// TestGeometricPoolMemory: the points that pass a head at a time are counted, and a smaller
// chunk takes less.
func TestGeometricPoolMemory(t *testing.T) {
	cfg := geraHeads()
	cfg.Model.Heads.Hidden, cfg.Train.BatchSize = 512, 64
	buffers := map[int]int64{}
	for _, chunk := range []int{0, 16} {
		cfg.Objective.Geometric.Chunk = chunk
		h, _ := buildGera(t, cfg, newEngine(t))
		least := check.Get(Estimate(cfg))(t)
		buffers[chunk] = h.Footprint().Buffers
		if least.Buffers > buffers[chunk] {
			t.Errorf("chunk %d: the estimate says at least %d bytes, a step takes %d", chunk, least.Buffers, buffers[chunk])
		}
	}
	if points := int64(64 * 4 * 512 * 4); buffers[0]-buffers[16] < points/2 {
		t.Errorf("%d bytes in one chunk, %d in sixteen", buffers[0], buffers[16])
	}
}

// TestGeometricPoolErrors: what a model of the term cannot do without.
func TestGeometricPoolErrors(t *testing.T) {
	cfg := geraHeads()
	image, text, _ := poolsOf(cfg)
	for want, o := range map[string]Options{
		"needs the pool of image features":                          {TextPool: text},
		"needs the pool of text features":                           {ImagePool: image},
		"the pool has rows of 4 values, the features of the side 6": {ImagePool: text, TextPool: text},
	} {
		o.Engine = newEngine(t)
		check.Fails(New(cfg, o))(t, want)
	}
	cfg.Objective.Geometric.Modalities = "text"
	h := newTrainer(t, cfg, Options{Engine: newEngine(t), TextPool: text})
	columns, err := Columns(cfg)
	if err != nil || len(columns) != len(h.Columns()) {
		t.Errorf("columns %v and %v (%v)", columns, h.Columns(), err)
	}
}

// TestGeometricPoolMasks: the points of images and those of texts have masks of their own.
func TestGeometricPoolMasks(t *testing.T) {
	cfg := geraHeads()
	cfg.Model.Heads.InText, cfg.Model.Heads.Dropout = cfg.Model.Heads.InImage, 0.5
	image, _, near := poolsOf(cfg)
	h := newTrainer(t, cfg, Options{Engine: newEngine(t), ImagePool: image, TextPool: image})
	for _, q := range h.params.List() {
		if name, ok := strings.CutPrefix(q.Name, "text_head/"); ok {
			twin, _ := h.params.Get("image_head/" + name)
			copy(h.params.Value(q), h.params.Value(twin))
		}
	}
	f := randomFeatures(cfg, 6)
	f.ImageNeighbours = near()
	f.TextNeighbours = f.ImageNeighbours
	r := forward(t, h, f, Control{Step: 2})
	value := partsOf(r)
	if a, b := value["geometric_image"], value["geometric_text"]; a == b || a == 0 {
		t.Errorf("one head over one pool gives %v and %v", a, b)
	}
}
