package geometric

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
)

// neighbourClusters are the rows of the queue by cluster, and the order in which anchors
// look at clusters.
type neighbourClusters struct {
	c      *exec.Call
	at     int   // operand of the owners
	used   int   // clusters
	starts []int // (K+1) where the members of each cluster begin in rows
	rows   []int32
	work   []clusterWork
}

// clusterWork belongs to one thread.
type clusterWork struct {
	value []float32
	index []int32
}

func newNeighbourClusters(n *neighbours, c *exec.Call) *neighbourClusters {
	k, q := c.In[n.owner+nbPaths].Dim(0), c.In[nbQueue].Dim(0)
	s := &neighbourClusters{c: c, at: n.owner, starts: make([]int, k+1), rows: make([]int32, q),
		work: make([]clusterWork, c.Engine.Threads())}
	for i := range s.work {
		s.work[i] = clusterWork{make([]float32, k), make([]int32, k)}
	}
	return s
}

// begin lists the members of the clusters among the filled rows, by counting. It returns
// false where there is no graph yet.
func (s *neighbourClusters) begin(filled int) (bool, error) {
	k := len(s.starts) - 1
	if s.used = int(s.c.In[s.at+nbUsed].I32[0]); s.used < 0 || s.used > k {
		return false, fmt.Errorf("ops: neighbours: %d centres are used: want [0, %d]", s.used, k)
	}
	if s.used == 0 {
		return false, nil
	}
	for i, own := range s.c.In[s.at+nbOwn].I32 {
		if own < 0 || int(own) >= s.used {
			return false, fmt.Errorf("ops: neighbours: cluster %d of anchor %d: want [0, %d)", own, i, s.used)
		}
	}
	owner := s.c.In[s.at+nbOwner].I32[:filled]
	clear(s.starts)
	for i, o := range owner {
		if o < 0 || int(o) >= s.used {
			return false, fmt.Errorf("ops: neighbours: cluster %d of row %d of the queue: want [0, %d)", o, i, s.used)
		}
		s.starts[o+1]++
	}
	for i := range k {
		s.starts[i+1] += s.starts[i]
	}
	for i, o := range owner { // starts[o] runs through the list of o
		s.rows[s.starts[o]] = int32(i)
		s.starts[o]++
	}
	copy(s.starts[1:], s.starts[:k])
	s.starts[0] = 0
	return true, nil
}

// members returns the rows of cluster k in ascending order.
func (s *neighbourClusters) members(k int32) []int32 { return s.rows[s.starts[k]:s.starts[k+1]] }

// order returns the clusters from that of anchor a on.
func (s *neighbourClusters) order(worker, a int) []int32 {
	w, paths := s.work[worker], s.c.In[s.at+nbPaths]
	own := s.c.In[s.at+nbOwn].I32[a]
	h := nearest{value: w.value[:s.used], index: w.index[:s.used]}
	for k, d := range paths.F32[int(own)*paths.Dim(1):][:s.used] {
		if k == int(own) {
			d = -math.MaxFloat32 // before clusters at distance 0
		}
		h.push(-d, int32(k))
	}
	h.sort()
	return h.index
}
