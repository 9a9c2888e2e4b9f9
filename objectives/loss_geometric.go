package objectives

import (
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
	// One stream for both sides, that of images first.
	var noise [][]float32
	s.OnFill(func(f *feed.Step) error {
		r := rng.New(s.Seed, rng.Neighbours, uint64(f.Counter))
		for _, x := range noise {
			s.fillNoise(x, r, f, uniform)
		}
		return nil
	})
	add := func(name string, x regularised) {
		mem := make([]float32, s.Rows*l.Near)
		noise = append(noise, mem)
		x.noise = s.SharedFloats("noise of "+name+" neighbours", mem, s.Rows, l.Near)
		parts = append(parts, s.Part("geometric_"+name, l.Weight, l.term(s, x)))
	}
	if l.Image {
		add("image", regularised{online: s.Online.Image, points: s.Backbone(s.Teacher.Image), past: banks.ImageBackbone, bank: banks.Image})
	}
	if l.Text {
		add("text", regularised{online: s.Online.Text, points: s.Backbone(s.Teacher.Text), past: banks.TextBackbone, bank: banks.Text})
	}
	return parts
}

// regularised is a side with the term.
type regularised struct {
	online Side           // whose head the points pass
	points *gorgonia.Node // (B, D') the anchors, before the teacher's head
	past   *gorgonia.Node // (Q, D') those of past batches
	bank   *Bank          // the features of past batches, whose graph has the clusters
	noise  *gorgonia.Node // (B, M) that neighbours are sampled by
}

// term is the term of a side.
func (l Geometric) term(s *Step, x regularised) *gorgonia.Node {
	banks := s.Banks()
	args := geometric.NeighbourArgs{
		X: x.points, Queue: x.past, Filled: banks.Filled, Noise: x.noise,
		Near: l.Near, Count: l.Neighbours - 1, Sampling: l.Sampling,
	}
	if g := x.bank.Graph; l.Clusters {
		Need(g != nil, "geometric", "needs the graph over the queue to search its clusters: set objective.geometric.search = \"exact\"")
		owner, _ := x.bank.Attach()
		if s.splits() {
			owner = layout.GatherInts(owner, s.Own()) // (B) of all
		}
		args.Clusters = &geometric.NeighbourClusters{
			Owner: g.Owner, Own: owner, Paths: g.Paths, Used: g.Count,
			Candidates: min(searched*l.Near, banks.Size),
		}
	}
	head, ok := x.online.Head.(linearHead)
	Need(ok, "geometric", "needs a head of one linear layer: set objective.geometric.weight = 0")
	m := head.Classes()
	weight, bias := head.Parameters(x.online.Scope, x.points.Shape()[1]/m)
	groups := s.Scores.Space.Groups()
	if s.Scores.Space.Euclid {
		groups = 0 // no part of a projected row is normalised
	}
	return geometric.Geometric(geometric.GeometricArgs{
		Anchors: x.points, Queue: x.past, Neighbours: geometric.Neighbours(args), Weight: weight, Bias: bias,
		Tokens: m, Groups: groups, Kernel: l.Kernel, Epsilon: float32(l.Epsilon), Scale: l.Scale,
	})
}
