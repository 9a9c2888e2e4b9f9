package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var neighboursSource = cuda.NewSource(files, "neighbours", "neighbours.cu")

const (
	// scoreBudget is about how many scores are held at once, 64 MiB.
	scoreBudget = 16 << 20
	// mostNear is how many nearest rows a block sorts in its shared memory. A search for more is the host's.
	mostNear = 4096
)

// Operands of Neighbours, as its op has them: noise and those of the clusters follow the first.
const (
	nbX = iota
	nbQueue
	nbFilled
)

const (
	nbOwner = iota
	nbOwn
	nbPaths
	nbUsed
)

// Neighbours is a search for neighbours.
type Neighbours struct {
	Near, Count  int
	Law          int // as neighbours.cu numbers them
	Noise, Owner int // operands, -1: none
	Candidates   int
}

// Step is that of the search: the scores of some anchors and all rows, then the choice among them. Clusters say which
// rows count; the others are scored all the same, which costs a device less than a list of them.
func (n Neighbours) Step() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b, width, q := c.In[nbX].Shape[0], c.In[nbX].Shape[1], c.In[nbQueue].Shape[0]
		if n.Near > mostNear {
			return nil
		}
		size := 1
		for size < n.Near {
			size *= 2
		}
		clusters := 0
		if n.Owner >= 0 {
			clusters = c.In[n.Owner+nbPaths].Shape[0]
		}
		anchors := max(1, min(b, scoreBudget/q, 65535*64))
		r := &cuda.Room{}
		inverse, scores, places, counts, offsets := words(r, q), words(r, anchors*q), words(r, q), words(r, clusters),
			words(r, anchors*clusters)
		base := cuda.Scratch(c, r.Bytes)
		for _, p := range []*cuda.Pointer{&inverse, &scores, &places, &counts, &offsets} {
			*p += base
		}
		load := func(name string) *cuda.Kernel {
			return cuda.Load(c, neighboursSource, name, cuda.Value("LAW", n.Law))
		}
		norms, score, choose := load("queue_norms"), load("neighbour_scores"), load("choose_neighbours")
		place, offset := load("cluster_places"), load("cluster_offsets")
		return func() {
			filled := c.In[nbFilled]
			norms.Enqueue(warps(q), inverse, c.In[nbQueue], q, width)
			if clusters > 0 {
				place.Enqueue(cuda.Grid{X: clusters, Threads: 256}, counts, places, c.In[n.Owner+nbOwner], filled, q)
			}
			for first := 0; first < b; first += anchors {
				rows := min(anchors, b-first)
				// at is where the values of the chunk's anchors begin in an operand with so many for each.
				at := func(operand, each int) cuda.Pointer {
					return cuda.At(c.In[operand]) + cuda.Pointer(4*first*each)
				}
				tiles := cuda.Grid{X: cuda.Blocks(q, 64), Y: cuda.Blocks(rows, 64), Threads: 16, ThreadsY: 16}
				score.Enqueue(tiles, scores, at(nbX, width), c.In[nbQueue], inverse, filled, rows, q, width)
				var noise, owner, own, used any
				if n.Noise >= 0 {
					noise = at(n.Noise, n.Near)
				}
				if clusters > 0 {
					owner, own, used = c.In[n.Owner+nbOwner], at(n.Owner+nbOwn, 1), c.In[n.Owner+nbUsed]
					offset.Enqueue(cuda.Grid{X: rows, Threads: 256}, offsets, counts, c.In[n.Owner+nbPaths], own, used,
						clusters)
				}
				out := cuda.At(c.Out) + cuda.Pointer(4*first*n.Count)
				choose.Enqueue(cuda.Grid{X: rows, Threads: 256, Shared: 12 * size}, out, scores, noise, filled, owner,
					own, used, places, offsets,
					q, n.Near, n.Count, size, clusters, n.Candidates)
			}
		}
	})
}
