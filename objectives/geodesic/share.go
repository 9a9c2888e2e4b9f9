package geodesic

import "github.com/geoalign/geoalign/compute/parallel"

// shareLeast is the number of multiplications of an assignment from which ranks share it: some milliseconds, beside
// which an exchange is short.
const shareLeast = 1 << 26

// share is the ranks that share assignments, each by a stretch of the chunks of points.
type share struct {
	group  parallel.Group // nil: this process alone
	least  int            // multiplications of an assignment that is shared
	first  int            // chunk of this rank's that is the first
	owners []int32        // of all points
	bests  []float32
	err    error // of an exchange
}

// Share has the builds that follow share their work among ranks, which all call Build with the same points, options,
// generators and centres before. All get the graph of one process: which centre is nearest to a point is found by one
// rank for each point, and told to the others. Build exchanges then, and so must come at the same place of the program
// on all ranks. nil ends it.
func (g *Graph) Share(ranks parallel.Group) {
	if ranks != nil && ranks.Size() == 1 {
		ranks = nil
	}
	g.cluster.share = share{group: ranks, least: shareLeast}
}

// shares says whether ranks share the assignment of the points at hand.
func (k *kmeans) shares() bool {
	return k.share.group != nil && k.share.err == nil && k.n*k.used*k.channels >= k.share.least
}

// assignShared sets owner and best of the chunks of this rank, and then of all.
func (k *kmeans) assignShared(chunks int) {
	s := &k.share
	rank, ranks := s.group.Rank(), s.group.Size()
	lo, hi := rank*chunks/ranks, (rank+1)*chunks/ranks
	s.first = lo
	k.e.For(hi-lo, 1, k.assignBody)
	s.first = 0
	from, to := min(lo*k.chunk, k.n), min(hi*k.chunk, k.n)
	if s.owners, s.err = s.group.GatherInts(s.owners[:0], k.owner[from:to]); s.err != nil {
		return
	}
	if s.bests, s.err = s.group.Gather(s.bests[:0], k.best[from:to]); s.err != nil {
		return
	}
	copy(k.owner[:k.n], s.owners)
	copy(k.best[:k.n], s.bests)
}
