package geodesic

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/space"
)

// Names of Options.Init.
const (
	InitPlusPlus = "plusplus"
	InitRows     = "rows"
)

// Options selects how a graph is built. The zero value of a field is its default.
type Options struct {
	// Layers is the number of clusters of each layer, top first and growing; the last is
	// K, the number of bottom centres: [256] is flat, [16, 256] has two layers. Required.
	Layers []int
	// Split divides the points into the clusters of the top layer and each cluster into
	// those of the next, as the text of the paper does, to at most K bottom centres.
	// Otherwise the points are clustered into K at once and the centres are grouped
	// upwards.
	Split bool
	// Neighbours is the number of nearest siblings each centre is joined to; 0 is 8. A
	// centre with fewer siblings is joined to all of them.
	Neighbours int
	// Iterations of Lloyd's algorithm in each clustering; 0 is 5.
	Iterations int
	// Init is where a clustering begins: "plusplus" (default) or "rows", see seed.go.
	Init string
	// WarmStart begins at the centres of the build before, where there is one.
	WarmStart bool
	// DirectLegs lets a centre reach its parent at the local distance between them. Otherwise the
	// leg runs over its siblings, as eq. 2 has it: see the package comment.
	DirectLegs bool
	// Limit is the length, in the unit of the local metric, at which Stats counts a path as
	// truncated; 0 is DefaultLimit times the root of the spheres. Euclidean rows need one.
	Limit float32
	// Space is where the points lie, one sphere if it is zero. Distances between near points
	// are those of the space, and on several spheres a point belongs to the centre of largest
	// dot product of the flat rows.
	Space space.Space
}

// Layer is one layer of a Graph: K_l centres, of which Used exist.
type Layer struct {
	Centres []float32 // (K_l, C) points of the metric; zero beyond Used
	Parent  []int32   // (K_l) index into the layer above, growing; 0 in the top layer
	Used    int

	first []int32 // (K_l+1) where the children of each centre begin in the layer below
	edges edges
	dist  []float32 // (K_l, K_l) paths between siblings; of the bottom layer it is Paths
	entry []int32   // (K_l) the child nearest to each centre
	drop  []float32 // (K_l) distance of each centre, as a point, to that child, see distance.go
	climb []float32 // (K) distance of each bottom centre to its ancestor in this layer
}

// Graph is a hierarchical graph over a ring of N points of C channels. Its slices
// keep their memory for life. One goroutine at a time may use it.
//
// Its state is Centres, Parent and Used of every layer with Owner and Reach: whoever sets
// these from outside calls Relink.
type Graph struct {
	Centres []float32 // (K, C) bottom centres, points of the metric; zero beyond Used
	Paths   []float32 // (K, K) eq. 2 between bottom centres: 0 on the diagonal, +Inf unreachable
	Owner   []int32   // (N) the bottom centre of each point
	Reach   []float32 // (N) the local distance to it
	Used    int       // bottom centres that exist; 0 before the first Build
	Layers  []*Layer  // top first; the last one's Centres are the field above

	points, channels int
	options          Options
	metric           metric
	cluster          kmeans
	link             linker
	far              outside
	split            splitter
	objective        []float64
	seconds          float64
}

// outside holds the points that From is at.
type outside struct {
	owner []int32   // (fromRows)
	reach []float32 // (fromRows)
	dst   []float32
	body  func(worker, lo, hi int)
}

// New returns an empty graph over points (N) of channels (C).
func New(points, channels int, o Options) (*Graph, error) {
	if o.Neighbours == 0 {
		o.Neighbours = 8
	}
	if o.Iterations == 0 {
		o.Iterations = 5
	}
	if o.Init == "" {
		o.Init = InitPlusPlus
	}
	if o.Limit == 0 && !o.Space.Euclid {
		o.Limit = DefaultLimit
		if m := o.Space.Groups(); m > 1 {
			o.Limit = float32(DefaultLimit * math.Sqrt(float64(m)))
		}
	}
	o.Layers = slices.Clone(o.Layers)
	if err := o.check(points, channels); err != nil {
		return nil, fmt.Errorf("geodesic: %w", err)
	}
	g := &Graph{points: points, channels: channels, options: o, metric: metric{o.Space.Groups(), o.Space.Euclid},
		Owner: make([]int32, points), Reach: make([]float32, points)}
	bottom := o.Layers[len(o.Layers)-1]
	for _, k := range o.Layers {
		g.Layers = append(g.Layers, &Layer{
			Centres: make([]float32, k*channels), Parent: make([]int32, k),
			first: make([]int32, k+1), edges: newEdges(k, o.Neighbours),
			dist:  make([]float32, k*k),
			entry: make([]int32, k), drop: make([]float32, k), climb: make([]float32, bottom),
		})
	}
	l := g.bottom()
	g.Centres, g.Paths = l.Centres, l.dist
	clearPaths(g.Paths, bottom)
	g.cluster.init(channels, bottom)
	g.cluster.metric = g.metric
	g.link.init(g, bottom)
	g.far = outside{owner: make([]int32, fromRows), reach: make([]float32, fromRows), body: g.fromPart}
	if o.Split {
		g.split.init(points, o.WarmStart, l)
	}
	return g, nil
}

func (o Options) check(points, channels int) error {
	switch n := len(o.Layers); {
	case points < 1 || channels < 1:
		return fmt.Errorf("points and channels must be above 0 (got %d points of %d channels)", points, channels)
	case n == 0:
		return errors.New("layers must name at least the number of bottom centres (got none): such as [256]")
	case o.Layers[0] < 1:
		return fmt.Errorf("layers must hold numbers above 0 (got %v)", o.Layers)
	case o.Layers[n-1] > points:
		return fmt.Errorf("layers must not end in more clusters than there are points (got %d clusters of %d points): use fewer clusters or more points", o.Layers[n-1], points)
	}
	for i := 1; i < len(o.Layers); i++ {
		if o.Layers[i] <= o.Layers[i-1] {
			return fmt.Errorf("layers must grow from the top to the bottom (got %v): such as [16, 256]", o.Layers)
		}
	}
	switch {
	case o.Neighbours < 0:
		return fmt.Errorf("neighbours must be above 0 (got %d)", o.Neighbours)
	case o.Iterations < 0:
		return fmt.Errorf("iterations must be above 0 (got %d)", o.Iterations)
	case o.Init != InitPlusPlus && o.Init != InitRows:
		return fmt.Errorf("init must be %q or %q (got %q)", InitPlusPlus, InitRows, o.Init)
	case o.Space.Check(channels) != nil:
		return o.Space.Check(channels)
	case o.Space.Euclid && !(o.Limit > 0):
		return fmt.Errorf("limit must be above 0 (got %v): Euclidean distances need one in the unit of the features",
			o.Limit)
	case !(o.Limit > 0):
		return fmt.Errorf("limit must be above 0 radians (got %v): the paper cuts paths at 4*pi", o.Limit)
	}
	return nil
}

func (g *Graph) bottom() *Layer { return g.Layers[len(g.Layers)-1] }

// Build clusters x (N, C), whose row j is point j, and makes the graph anew. It returns an
// error, and leaves the graph as it was, if a row of x is no point of the metric: not finite,
// or no unit vector on one of the spheres. The result depends on x, the options, what r
// draws, the engine's backend and, with WarmStart, the centres before.
//
// With Share ranks build the graph together. An error of an exchange leaves no graph.
//
// Points that coincide share a centre: with fewer distinct points than K, Used is at most
// their number.
//
// Stats.Objective has an entry for each iteration over all points, in the top layer for
// Split and in the bottom one otherwise, and one for the bottom centres at the end. It
// never rises.
func (g *Graph) Build(e *kernel.Engine, x []float32, r *rand.Rand) (Stats, error) {
	start := time.Now()
	if len(x) != g.points*g.channels {
		return Stats{}, fmt.Errorf("geodesic: points must hold %d x %d values (got %d)", g.points, g.channels, len(x))
	}
	if err := g.cluster.check(e, x, g.points); err != nil {
		return Stats{}, fmt.Errorf("geodesic: %w", err)
	}
	if g.options.Split {
		g.divide(e, x, r)
	} else {
		g.group(e, x, r)
	}
	g.Used = g.bottom().Used
	g.Relink(e)
	g.cluster.nearest(e, clustering{x: x, n: g.points, centres: g.Centres, used: g.Used, owner: g.Owner, best: g.Reach})
	if err := g.cluster.share.err; err != nil {
		return Stats{}, fmt.Errorf("geodesic: exchange of nearest centres: %w", err)
	}
	g.objective = append(g.objective, g.cluster.cost())
	g.cluster.reaches()
	g.seconds = time.Since(start).Seconds()
	return g.Stats(), nil
}

// Relink computes edges and paths from the centres and parents of the layers, which were
// set from outside, say read from a checkpoint. Used of the graph follows that of the
// bottom layer. Bits depend on the instruction set alone.
func (g *Graph) Relink(e *kernel.Engine) {
	g.Used = g.bottom().Used
	for i, l := range g.Layers {
		g.link.join(e, l)
		if i+1 < len(g.Layers) {
			l.setFirst(g.Layers[i+1])
		}
	}
	g.connect()
}

// setFirst finds the children of each centre in the layer below.
func (l *Layer) setFirst(below *Layer) {
	clear(l.first)
	for _, p := range below.Parent[:below.Used] {
		l.first[p+1]++
	}
	for i := range l.Used {
		l.first[i+1] += l.first[i]
	}
}

// CopyFrom makes g a copy of o, which was made with the same sizes and layers.
func (g *Graph) CopyFrom(o *Graph) {
	if g.points != o.points || g.channels != o.channels || !slices.Equal(g.options.Layers, o.options.Layers) ||
		g.metric != o.metric {
		panic("geodesic: CopyFrom: the graphs differ in their sizes or metric")
	}
	copy(g.Owner, o.Owner)
	copy(g.Reach, o.Reach)
	for i, l := range g.Layers {
		l.copyFrom(o.Layers[i])
	}
	g.Used, g.seconds = o.Used, o.seconds
	g.objective = append(g.objective[:0], o.objective...)
}

func (l *Layer) copyFrom(o *Layer) {
	copy(l.Centres, o.Centres)
	copy(l.Parent, o.Parent)
	copy(l.first, o.first)
	copy(l.dist, o.dist)
	copy(l.entry, o.entry)
	copy(l.drop, o.drop)
	copy(l.climb, o.climb)
	l.edges.copyFrom(&o.edges)
	l.Used = o.Used
}

// clearPaths sets the (k, k) matrix d to no path but that from each centre to itself.
func clearPaths(d []float32, k int) {
	vector.Fill(d, float32(math.Inf(1)))
	for i := range k {
		d[i*k+i] = 0
	}
}
