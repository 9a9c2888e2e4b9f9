package geometric

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed neighbours.cu
var neighboursText string

var neighboursSource = cuda.Source{Name: "neighbours", Text: neighboursText}

const (
	// scoreBudget is about how many scores are held at once, 64 MiB.
	scoreBudget = 16 << 20
	// mostNear is how many nearest rows a block sorts in its shared memory. A search for more is the host's.
	mostNear = 4096
)

// lawNumbers are the laws as neighbours.cu numbers them.
var lawNumbers = map[string]int{Closest: 0, Uniform: 1, Biased: 2}

// onCUDA is the step of the search: the scores of some anchors and all rows, then the choice among them. Clusters say which rows
// count; the others are scored all the same, which costs a device less than a list of them.
func (n *neighbours) onCUDA(c *exec.DeviceCall) (exec.Step, error) {
	b, width, q := c.In[nbX].Shape[0], c.In[nbX].Shape[1], c.In[nbQueue].Shape[0]
	if n.near > mostNear {
		return nil, nil
	}
	size := 1
	for size < n.near {
		size *= 2
	}
	clusters := 0
	if n.owner >= 0 {
		clusters = c.In[n.owner+nbPaths].Shape[0]
	}
	anchors := max(1, min(b, scoreBudget/q, 65535*64))
	var r room
	inverse, scores, places, counts, offsets := r.words(q), r.words(anchors*q), r.words(q), r.words(clusters), r.words(anchors*clusters)
	base, err := cuda.Scratch(c, r.bytes)
	if err != nil {
		return nil, err
	}
	for _, p := range []*cuda.Pointer{&inverse, &scores, &places, &counts, &offsets} {
		*p += base
	}
	load := func(name string) *cuda.Kernel {
		return cuda.Load(c, &neighboursSource, name, cuda.Value("LAW", lawNumbers[n.law]))
	}
	norms, score, choose := load("queue_norms"), load("neighbour_scores"), load("choose_neighbours")
	place, offset := load("cluster_places"), load("cluster_offsets")
	return func() error {
		filled := c.In[nbFilled]
		if err := norms.Launch(warps(q), inverse, c.In[nbQueue], q, width); err != nil {
			return err
		}
		if clusters > 0 {
			if err := place.Launch(cuda.Grid{X: clusters, Threads: 256}, counts, places, c.In[n.owner+nbOwner], filled, q); err != nil {
				return err
			}
		}
		for first := 0; first < b; first += anchors {
			rows := min(anchors, b-first)
			// at is where the values of the chunk's anchors begin in an operand with so many for each.
			at := func(operand, each int) cuda.Pointer { return cuda.At(c.In[operand]) + cuda.Pointer(4*first*each) }
			tiles := cuda.Grid{X: cuda.Blocks(q, 64), Y: cuda.Blocks(rows, 64), Threads: 16, ThreadsY: 16}
			if err := score.Launch(tiles, scores, at(nbX, width), c.In[nbQueue], inverse, filled, rows, q, width); err != nil {
				return err
			}
			var noise, owner, own, used any
			if n.noise >= 0 {
				noise = at(n.noise, n.near)
			}
			if clusters > 0 {
				owner, own, used = c.In[n.owner+nbOwner], at(n.owner+nbOwn, 1), c.In[n.owner+nbUsed]
				if err := offset.Launch(cuda.Grid{X: rows, Threads: 256}, offsets, counts, c.In[n.owner+nbPaths], own, used, clusters); err != nil {
					return err
				}
			}
			out := cuda.At(c.Out) + cuda.Pointer(4*first*n.count)
			if err := choose.Launch(cuda.Grid{X: rows, Threads: 256, Shared: 12 * size}, out, scores, noise, filled, owner, own, used, places, offsets,
				q, n.near, n.count, size, clusters, n.candidates); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
