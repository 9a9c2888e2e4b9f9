package objectives

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/ops/geometric"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Geometric is the geometric term of each side that is regularised: it compares the
// neighbourhood of every image, or text, before and after the head (GeRA, eq. 3). The
// points before it are the teacher's, which the queue keeps, and pass the student's head:
// a gradient reaches the head alone.
type Geometric struct {
	Weight      float64 // for each side
	Image, Text bool    // sides with the term
	Near        int     // M, the nearest entries of the queue that neighbours are sampled among
	Neighbours  int     // K, points of a neighbourhood, the anchor among them
	Sampling    string  // biased, uniform or closest
	Clusters    bool    // search the nearest clusters of the graph instead of all entries
	Kernel      string  // heat, linear, squared or inverse
	Epsilon     float64 // width of the heat kernel
	Scale       string  // of distances: unit, relative or none
}

// searched is how many times as many entries are looked at as the nearest that are wanted,
// where clusters say which.
const searched = 4

// linearHead is a head of one linear layer, which the term passes points through.
type linearHead interface {
	encoders.Head
	Parameters(s encoders.Scope, d int) (weight, bias *gorgonia.Node)
}

// Build implements Loss.
func (l Geometric) Build(s *Step) (parts []Part) {
	needTeacher(s, "geometric")
	banks := s.Banks()
	Need(banks.Size > 0, "geometric", "needs the queue: set queue.size > 0, or objective.geometric.weight = 0")
	filled := banks.Filled
	// One stream for both sides, that of images first.
	var noise [][]float32
	s.OnFill(func(f *feed.Step) error {
		r := rng.New(s.Seed, rng.Neighbours, uint64(f.Counter))
		for _, x := range noise {
			uniform(r, f, x, s.Rows)
		}
		return nil
	})
	add := func(name string, side, online Side, bank *Bank, ring *gorgonia.Node) {
		x := s.Backbone(side)
		mem := make([]float32, s.Rows*l.Near)
		noise = append(noise, mem)
		node := s.SharedFloats("noise of "+name+" neighbours", mem, s.Rows, l.Near)
		parts = append(parts, s.Part("geometric_"+name, l.Weight, l.term(s, x, online, bank, ring, filled, node)))
	}
	if l.Image {
		add("image", s.Teacher.Image, s.Online.Image, banks.Image, banks.ImageBackbone)
	}
	if l.Text {
		add("text", s.Teacher.Text, s.Online.Text, banks.Text, banks.TextBackbone)
	}
	return parts
}

// Backbone returns the class tokens (B*m, D) of each sample of a side as one row, (B, m*D).
func (s *Step) Backbone(x Side) *gorgonia.Node {
	return layout.Reshape(x.Classes, s.Rows, x.Classes.Shape().TotalSize()/s.Rows)
}

// term is the term of a side, whose anchors are the rows of x.
func (l Geometric) term(s *Step, x *gorgonia.Node, side Side, bank *Bank, ring, filled, noise *gorgonia.Node) *gorgonia.Node {
	args := geometric.NeighbourArgs{
		X: x, Queue: ring, Filled: filled, Noise: noise,
		Near: l.Near, Count: l.Neighbours - 1, Sampling: l.Sampling,
	}
	if l.Clusters {
		owner, _ := bank.Attach()
		args.Clusters = &geometric.NeighbourClusters{
			Owner: bank.Graph.Owner, Own: owner, Paths: bank.Graph.Paths, Used: bank.Graph.Count,
			Candidates: min(searched*l.Near, s.Banks().Size),
		}
	}
	head, ok := side.Head.(linearHead)
	Need(ok, "geometric", "needs a head of one linear layer: set objective.geometric.weight = 0")
	m := head.Classes()
	weight, bias := head.Parameters(side.Scope, x.Shape()[1]/m)
	groups := s.Scores.Space.Groups()
	if s.Scores.Space.Euclid {
		groups = 0 // no part of a projected row is normalised
	}
	return geometric.Geometric(geometric.GeometricArgs{
		Anchors: x, Queue: ring, Neighbours: geometric.Neighbours(args), Weight: weight, Bias: bias,
		Tokens: m, Groups: groups, Kernel: l.Kernel, Epsilon: float32(l.Epsilon), Scale: l.Scale,
	})
}

// uniform fills rows of dst with numbers in (0, 1), this process's share of those of the
// global batch.
func uniform(r *rand.Rand, f *feed.Step, dst []float32, rows int) {
	lo, hi, all := f.Share(rows)
	width := len(dst) / rows
	for i := range all * width {
		v := (float32(r.Uint32()>>9) + 0.5) / (1 << 23)
		if i >= lo*width && i < hi*width {
			dst[i-lo*width] = v
		}
	}
}
