package objectives

import (
	"github.com/geoalign/geoalign/ops/geodesic"
	"github.com/geoalign/geoalign/ops/pool"
	"github.com/geoalign/geoalign/ops/similarity"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// Bank is what features are compared with in one modality: the momentum features of
// the batch and a queue of past ones. It has one of two layouts of columns.
//
//   - Without Pointer: the batch, then the queue, (B, B+Q), as in ALBEF.
//   - With Pointer: the pool that the queue is once the batch has overwritten its oldest
//     entries, (B, Q), as in GeoMM (Mei et al., algorithm 2, lines 11 to 13). Row i of the
//     batch is column (Pointer+i) mod Q.
type Bank struct {
	Keys    *gorgonia.Node // (B, C) unit rows
	Queue   *gorgonia.Node // (Q, C) unit rows, or nil
	Cols    *gorgonia.Node // number of columns that exist, int32 scalar; nil: all
	Pointer *gorgonia.Node // where the batch enters the queue, int32 scalar, or nil
	Graph   *Graph         // over the queue, nil without one; it needs Pointer
	Local   space.Space    // metric of the graph; zero: the angle on one sphere
	// Places are the columns 0, 1, ... Q-1 of the pool, int32 (Q), where rows are not those of the keys, as those of
	// one of several processes; nil: row i is that of key i.
	Places *gorgonia.Node

	keyOwner, keyReach *gorgonia.Node // of Keys in Graph, once they were asked for
}

// Graph is the hierarchical graph over a queue as inputs of a computation, see package
// objectives/geodesic: K bottom centres and where each entry of the queue hangs.
type Graph struct {
	Centres *gorgonia.Node // (K, C) points of the metric
	Paths   *gorgonia.Node // (K, K) geodesic distances between centres, infinite without a path
	Owner   *gorgonia.Node // (Q) int32, the centre of each entry
	Reach   *gorgonia.Node // (Q) the local distance to it
	Count   *gorgonia.Node // centres in use, int32 scalar; 0 before the first graph is built
}

func (b *Bank) pool() pool.Pool {
	return pool.Pool{Keys: b.Keys, Queue: b.Queue, Pointer: b.Pointer, Cols: b.Cols}
}

// Cosine returns the dot products of unit rows f (B, C) with every column.
func (b *Bank) Cosine(f *gorgonia.Node) *gorgonia.Node {
	if b.Pointer == nil {
		return similarity.Similarity(f, b.Keys, b.Queue, b.Cols)
	}
	return pool.Similarity(f, b.pool())
}

// distance returns the negative distances of rows f (B, C) from every column.
func (b *Bank) distance(d similarity.Distance, f *gorgonia.Node) *gorgonia.Node {
	if b.Pointer == nil {
		return similarity.NegativeDistance(d, f, b.Keys, b.Queue, b.Cols)
	}
	return similarity.PoolNegativeDistance(d, f, b.pool())
}

// Batch returns the columns of the batch (B, B) of scores of this layout. No gradient
// flows through it.
func (b *Bank) Batch(scores *gorgonia.Node) *gorgonia.Node {
	if b.Pointer == nil {
		return scores // SampleNegatives reads the first columns
	}
	return pool.Columns(scores, b.Pointer, b.Keys.Shape()[0])
}

// Attach returns the centres (B) int32 of Graph that the keys hang at, and their
// distances (B) to them.
func (b *Bank) Attach() (owner, reach *gorgonia.Node) {
	if b.keyOwner == nil {
		b.keyOwner, b.keyReach = geodesic.NearestCentre(b.Keys, b.Graph.Centres, b.Graph.Count, b.Local)
	}
	return b.keyOwner, b.keyReach
}

// Geodesic returns the scores of features f (B, C) of either modality with every entry of
// the pool, (B, Q), in [-1, 1]: eq. 3 of Mei et al. with angle normalisation, and the
// gradient that p says. Before the first graph is built these are cosines, on several
// spheres their mean, and of Euclidean features the cosine of the distance scaled as a path.
func (b *Bank) Geodesic(f *gorgonia.Node, p Paths, positives Positives) *gorgonia.Node {
	g := b.Graph
	b.Attach()
	rows, cols := positives.RowIDs, positives.ColIDs
	if rows == nil && p.DirectPositives && b.Places != nil {
		rows, cols = positives.Labels, b.Places
	}
	nearest, _ := geodesic.NearestCentre(f, g.Centres, g.Count, b.Local)
	return geodesic.Geodesic(geodesic.GeodesicArgs{
		F: f, Nearest: nearest,
		Distances: geodesic.CentreDistances(geodesic.EntryArgs{X: f, Centres: g.Centres, Paths: g.Paths, Count: g.Count,
			Entries: min(p.Entries, g.Centres.Shape()[0]), Softness: p.Softness, Space: b.Local}),
		Pool:  b.pool(),
		Owner: g.Owner, Reach: g.Reach, KeyOwner: b.keyOwner, KeyReach: b.keyReach, Count: g.Count,
		RowIDs: rows, ColIDs: cols,
		DirectPositives: p.DirectPositives, SameCluster: p.SameCluster, StraightThrough: p.StraightThrough,
		Limit: p.Limit, Space: b.Local,
	})
}

// Memory is the host side of past features, such as the queue of a model.
type Memory interface {
	// Banks adds the memory's inputs to the step, once the towers are built.
	Banks(s *Step) *Banks
}

// Banks are the features that a step compares its own with: the momentum features of the
// batch and the queue of past ones.
type Banks struct {
	Image, Text *Bank // Text is nil in systems of images alone
	// Positives are the columns that are right answers for the rows of the batch.
	Positives Positives
	// Own (B) int32 are the columns of the batch, nil for 0, 1, ... B-1.
	Own *gorgonia.Node
	// Filled is the number of entries that the queue had before the batch, and Usable how
	// many of them a step may read: none before the queue comes into use. int32 scalars.
	Filled, Usable *gorgonia.Node
	// GraphActive says whether the step that was filled last reads graphs over the queue.
	GraphActive func() bool
	// ImageBackbone and TextBackbone are the rings (Q, D') of features before the head, nil
	// unless they are kept.
	ImageBackbone, TextBackbone *gorgonia.Node
	Size                        int // Q, 0 without a queue
}
