package objectives

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/ops/geometric"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Geometric is the regularisation of GeRA: the head keeps the geometry that the features of a tower have before it. Of
// stored features the neighbours are rows of a pool, found once; else they are sought in the queue, which then keeps
// the features before the head too.
//
// The neighbourhood of every image, or text, is compared before and after the head (GeRA, eq. 3). Points of the queue
// are the teacher's, and pass the student's head: a gradient reaches the head alone.
type Geometric struct {
	// alpha of GeRA, for each modality; 0: off
	section.Weighted
	// both | image | text
	Modalities string `toml:"modalities"`
	// K, points of a neighbourhood, the anchor among them
	Neighbours int `toml:"neighbours" max:"65536"`
	// neighbours are sampled among the pool x K nearest entries of the queue, or rows of the pool of stored features
	Pool int `toml:"pool" max:"65536"`
	// biased (nearer ones are likelier) | uniform | closest
	Sampling string `toml:"sampling"`
	// the anchor is the first of the K points
	Anchor bool `toml:"anchor" when:"stored"`
	// exact (all entries of the queue) | clusters (those of the nearest clusters of the graph over the queue, once
	// there is one)
	Search string `toml:"search" when:"towers"`
	// of two points: heat | linear | squared | inverse
	Kernel string `toml:"kernel"`
	// width of the heat kernel, exp(-d^2/(4 epsilon))
	Epsilon float64 `toml:"epsilon" when:"kernel=heat"`
	// of distances: unit (vectors are scaled to unit length) | relative (to the mean of the neighbourhood) | none
	Scale string `toml:"scale"`
	// rows of the pool that pass a head at a time, at least those of one anchor: fewer take less memory; 0: about 4096
	Chunk int `toml:"chunk" when:"stored" max:"16777216"`
}

var _ Loss = (*Geometric)(nil)

// Defaults implements section.Defaulter.
func (l *Geometric) Defaults() {
	*l = Geometric{Modalities: "both", Neighbours: 16, Pool: 5, Sampling: "biased", Anchor: true, Search: "exact",
		Kernel: "heat", Epsilon: 0.8, Scale: "unit"}
}

// Images says whether images have the term where it is on.
func (l *Geometric) Images() bool { return l.Modalities != "text" }

// Texts says whether texts have the term where it is on.
func (l *Geometric) Texts() bool { return l.Modalities != "image" }

// Near returns M, the nearest points that neighbours are sampled among.
func (l *Geometric) Near() int { return l.Pool * l.Neighbours }

// Gives implements section.Giver.
func (l *Geometric) Gives() []section.Fact {
	list := []section.Fact{section.Vectors, section.States, section.BatchImages, section.Beside}
	if l.Images() {
		list = append(list, section.TeacherImages)
	}
	return list
}

// Derives implements section.Deriver.
func (l *Geometric) Derives(v *section.View) []section.Fact {
	if v.Has(section.Stored) {
		return nil
	}
	return []section.Fact{section.BackboneQueue, section.TeacherFeatures}
}

// Check implements section.Checked: what the term needs of the rest is told only where it is on.
func (l *Geometric) Check(k *section.Checker) {
	k.OneOf("modalities", "both", "image", "text")
	k.OneOf("sampling", "biased", "uniform", "closest")
	k.OneOf("search", "exact", "clusters")
	k.OneOf("kernel", "heat", "linear", "squared", "inverse")
	k.OneOf("scale", "unit", "relative", "none")
	k.Require("neighbours", l.Neighbours >= 2, "must be >= 2", "the anchor is one of them")
	k.Positive("pool")
	k.Require("epsilon", l.Epsilon >= 1e-4 && l.Epsilon <= 1e4, "must be between 0.0001 and 10000", "0.8 in the paper")
	k.NotNegative("chunk")
	if !l.On() || k.Has(section.Stored) {
		return
	}
	if !k.Has(section.Captions) { // whose queue and teacher are no remedy
		k.Require("weight", false, "must be 0", k.Named()+" keeps no features before the head")
		return
	}
	const hint = "neighbours are found in a queue of the teacher's features: or set objective.geometric.weight = 0"
	size := int(k.Number("queue.size"))
	k.Require("momentum.enabled", k.Value("momentum.enabled") == true, "must be true", hint)
	k.Require("queue.size", size > 0, "must be > 0", hint)
	if size > 0 && l.Neighbours > 0 { // by division: the product may overflow
		k.Require("neighbours", l.Pool <= size/l.Neighbours,
			"objective.geometric.pool times this must not be more than queue.size",
			fmt.Sprintf("the nearest %d x %d of the %d entries of the queue are wanted: use fewer, or a larger queue",
				l.Pool, l.Neighbours, size))
	}
	k.Require("search", l.Search == "exact" || k.Has(section.Graph), `must be "exact" without a graph over the queue`,
		"its clusters are those of the geodesic, which no score that is trained has")
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
func (l *Geometric) Build(s *Step) (parts []Part) {
	if s.Has(section.Stored) {
		return l.pooled(s)
	}
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
		mem := make([]float32, s.Rows*l.Near())
		noise = append(noise, mem)
		x.noise = s.SharedFloats("noise of "+name+" neighbours", mem, s.Rows, l.Near())
		parts = append(parts, s.Part("geometric_"+name, l.Weight, l.term(s, x)))
	}
	if l.Images() {
		add("image", regularised{online: s.Online.Image, points: s.Backbone(s.Teacher.Image), past: banks.ImageBackbone,
			bank: banks.Image})
	}
	if l.Texts() {
		add("text", regularised{online: s.Online.Text, points: s.Backbone(s.Teacher.Text), past: banks.TextBackbone,
			bank: banks.Text})
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
func (l *Geometric) term(s *Step, x regularised) *gorgonia.Node {
	banks := s.Banks()
	args := geometric.NeighbourArgs{
		X: x.points, Queue: x.past, Filled: banks.Filled, Noise: x.noise,
		Near: l.Near(), Count: l.Neighbours - 1, Sampling: l.Sampling,
	}
	if g := x.bank.Graph; l.Search == "clusters" {
		Need(g != nil, "geometric", "needs the graph over the queue to search its clusters: set objective.geometric.search = \"exact\"")
		owner, _ := x.bank.Attach()
		if s.splits() {
			owner = layout.GatherInts(owner, s.Own()) // (B) of all
		}
		args.Clusters = &geometric.NeighbourClusters{
			Owner: g.Owner, Own: owner, Paths: g.Paths, Used: g.Count,
			Candidates: min(searched*l.Near(), banks.Size),
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

// Dropout places of the points of both sides, apart from those of the towers and of the
// teacher's: no tower has that many.
const (
	imagePointSites = 2 << 16
	textPointSites  = 3 << 16
)

// pooled is the term for heads of any depth over features that are stored: a sample names the points of its
// neighbourhood by rows of a pool, in the columns batch.ImageNeighbours and batch.TextNeighbours. The points pass the
// head as in training, with dropout masks of their own, some anchors at a time.
func (l *Geometric) pooled(s *Step) (parts []Part) {
	if l.Images() {
		Need(s.ImagePool != nil, "geometric", "needs the pool of image features: give it in Options.ImagePool")
		parts = append(parts, s.Part("geometric_image", l.Weight,
			l.inPool(s, s.Online.Image, s.ImagePool, batch.ImageNeighbours, imagePointSites)))
	}
	if l.Texts() {
		Need(s.TextPool != nil, "geometric", "needs the pool of text features: give it in Options.TextPool")
		parts = append(parts, s.Part("geometric_text", l.Weight,
			l.inPool(s, s.Online.Text, s.TextPool, batch.TextNeighbours, textPointSites)))
	}
	return parts
}

// inPool is the term of a side.
func (l *Geometric) inPool(s *Step, x Side, pool batch.Pool, column string, sites uint64) *gorgonia.Node {
	Need(pool.Width() == x.Width, "geometric",
		"the pool has rows of %d values, the features of the side %d: use features of one encoder", pool.Width(),
		x.Width)
	Need(x.Head.Classes() == 1, "geometric", "a feature of a pool is one class token, and the head reads %d",
		x.Head.Classes())
	return geometric.Pooled(geometric.PooledArgs{
		Neighbours: s.Column(batch.Column{Name: column, Shape: []int{l.Neighbours}, Type: batch.Int32}, s.Rows),
		Pool:       pool, Key: s.Student.DropoutKey, First: s.Rows * s.Ranks.Rank(), Chunk: l.Chunk,
		Kernel: l.Kernel, Epsilon: float32(l.Epsilon), Scale: l.Scale,
		Head: func(points, key *gorgonia.Node) (rows *gorgonia.Node, parameters []geometric.Parameter) {
			c := &encoders.Context{DropoutKey: key}
			c.SkipSites(sites)
			scope := x.Scope.Copied(points.Graph(), func(parameter, input *gorgonia.Node) {
				parameters = append(parameters, geometric.Parameter{Node: parameter, Copy: input})
			})
			return x.Head.Project(c, scope, points), parameters
		},
	})
}
