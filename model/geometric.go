package model

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/geometric"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// geometricInputs are the inputs of the geometric terms.
type geometricInputs struct {
	filled      *gorgonia.Node // entries that the queue has, int32 scalar; nil without the terms
	image, text neighbourInputs
	host        [1]int32 // memory of filled
}

// neighbourInputs are those of one modality, nil where it has no term.
type neighbourInputs struct {
	queue *gorgonia.Node // (Q, D') features before the head
	noise *gorgonia.Node // (B, M) uniform numbers that neighbours are sampled by
	host  []float32      // memory of noise, drawn anew for each step
}

// geometric adds the geometric term of each modality that is regularised: it compares the
// neighbourhood of every image, or text, before and after the head (GeRA,
// eq. 3). The points before it are the teacher's, which the queue keeps, and
// pass the student's head: a gradient reaches the head alone.
func (s *builder) geometric() {
	g, tg := s.m.cfg.Objective.Geometric, s.tg
	if g.Weight == 0 {
		return
	}
	tg.geometric.filled = s.ints("filled entries")
	if g.Modalities != "text" {
		tg.imageBackbone = s.backbone(s.momentum.imageClasses) // (B, D')
		s.add("geometric_image", g.Weight, s.neighbourhoods("image", tg.imageBackbone, &tg.geometric.image, s.images))
	}
	if g.Modalities != "image" {
		tg.textBackbone = s.backbone(s.momentum.textClasses) // (B, D')
		s.add("geometric_text", g.Weight, s.neighbourhoods("text", tg.textBackbone, &tg.geometric.text, s.texts))
	}
}

// backbone returns the class tokens (B*m, D) of each sample as one row: (B, m*D).
func (s *builder) backbone(classes *gorgonia.Node) *gorgonia.Node {
	shape := classes.Shape()
	return layout.Reshape(classes, s.b, shape.TotalSize()/s.b)
}

// neighbourhoods is the geometric term of a modality, whose anchors are the rows of x.
func (s *builder) neighbourhoods(modality string, x *gorgonia.Node, in *neighbourInputs, bank *objectives.Bank) *gorgonia.Node {
	g, head := s.m.cfg.Objective.Geometric, s.m.head
	in.queue = s.floats(modality+" backbone queue", s.m.queue.size, x.Shape()[1])
	in.noise = s.floats("noise of "+modality+" neighbours", s.b, g.Near())
	args := geometric.NeighbourArgs{
		X: x, Queue: in.queue, Filled: s.tg.geometric.filled, Noise: in.noise,
		Near: g.Near(), Count: g.Neighbours - 1, Sampling: g.Sampling,
	}
	if g.Search == "clusters" {
		owner, _ := bank.Attach()
		args.Clusters = &geometric.NeighbourClusters{
			Owner: bank.Graph.Owner, Own: owner, Paths: bank.Graph.Paths, Used: bank.Graph.Count,
			Candidates: min(searched*g.Near(), s.m.queue.size),
		}
	}
	m := head.Classes()
	weight, bias := head.Parameters(s.on.In(modality+"_proj"), x.Shape()[1]/m)
	groups := max(1, head.Spheres)
	if head.Euclid {
		groups = 0 // no part of a projected row is normalised
	}
	return geometric.Geometric(geometric.GeometricArgs{
		Anchors: x, Queue: in.queue, Neighbours: geometric.Neighbours(args), Weight: weight, Bias: bias,
		Tokens: m, Groups: groups, Kernel: g.Kernel, Epsilon: float32(g.Epsilon), Scale: g.Scale,
	})
}

// searched is how many times as many entries are looked at as the nearest that are wanted,
// where clusters say which.
const searched = 4

// bind ties the inputs to the memory of a queue.
func (in *geometricInputs) bind(set func(n *gorgonia.Node, data any), floats func(n *gorgonia.Node) []float32, q *Queue) {
	if in.filled == nil {
		return
	}
	set(in.filled, in.host[:])
	set(in.image.queue, q.ImageBackbone)
	set(in.text.queue, q.TextBackbone)
	in.image.host, in.text.host = floats(in.image.noise), floats(in.text.noise)
}

// load sets what a step draws and what the queue holds.
func (in *geometricInputs) load(q *Queue, seed, step uint64) {
	if in.filled == nil {
		return
	}
	in.host[0] = int32(q.Filled)
	r := rng.New(seed, rng.Neighbours, step)
	uniform(r, in.image.host)
	uniform(r, in.text.host)
}

// uniform fills dst with numbers in (0, 1).
func uniform(r *rand.Rand, dst []float32) {
	for i := range dst {
		dst[i] = (float32(r.Uint32()>>9) + 0.5) / (1 << 23)
	}
}

// keepBackbone makes room in the queue for what the heads read.
func (m *ALBEF) keepBackbone() {
	image, text := backboneWidths(m.cfg)
	keep := func(width int) []float32 {
		if width == 0 {
			return nil
		}
		return make([]float32, m.queue.size*width)
	}
	m.queue.ImageBackbone, m.queue.TextBackbone = keep(image), keep(text)
}
