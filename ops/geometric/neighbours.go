package geometric

import (
	"errors"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/geometric/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// NeighbourArgs are the operands of Neighbours.
type NeighbourArgs struct {
	X      *gorgonia.Node // (B, D') anchors
	Queue  *gorgonia.Node // (Q, D')
	Filled *gorgonia.Node // int32 scalar in [0, Q]: the first rows of the queue that exist
	Noise  *gorgonia.Node // (B, Near) uniform in (0, 1), which draws the neighbours; nil with Closest
	Near   int            // M, how many of the nearest are drawn from
	Count  int            // K-1 neighbours, at most Near
	// Sampling is Closest, Uniform or Biased.
	Sampling string
	// Clusters bounds the rows that are looked at; nil: all rows that exist.
	Clusters *NeighbourClusters
}

// NeighbourClusters are those of a geodesic graph over the queue, of K centres. The rows
// that an anchor is compared with are the members of its own cluster, then those of the
// cluster that is nearest to that one, and so on, until there are Candidates rows; of the
// last cluster the lowest rows. Clusters that no path reaches come last, by their number.
type NeighbourClusters struct {
	Owner *gorgonia.Node // (Q) int32, the cluster of each row of the queue
	Own   *gorgonia.Node // (B) int32, the cluster of each anchor
	Paths *gorgonia.Node // (K, K) distances between the centres, +Inf: unreachable
	Used  *gorgonia.Node // int32 scalar in [0, K], centres in use; 0: no graph yet, all rows are looked at
	// Candidates is how many rows an anchor is compared with at most, at least Near.
	Candidates int
}

// Neighbours returns for each anchor the rows of the queue that make its neighbourhood,
// (B, Count) int32: Count of the Near nearest, drawn without replacement
// and ordered from nearest on. Near is by the distance of rows divided by their L2 norms,
// which is by their cosine; of equal rows the one with the lower number is nearer, and a
// row that is not finite is farther than all others. While fewer rows than Near exist, all
// results are -1.
//
// An anchor that is in the queue itself is its own nearest row. There is no gradient.
// Results do not depend on the number of threads. Products are in float32 whatever the
// precision of the engine.
func Neighbours(a NeighbourArgs) *gorgonia.Node {
	n := &neighbours{near: a.Near, count: a.Count, law: a.Sampling, noise: -1, owner: -1}
	in := gorgonia.Nodes{a.X, a.Queue, a.Filled}
	err := op.All(
		CheckSampling(a.Sampling),
		op.Need(a.Count > 0 && a.Near >= a.Count, "want 0 < count <= near (got count %d and near %d)", a.Count, a.Near),
	)
	if err == nil && a.Sampling != Closest {
		if a.Noise == nil {
			err = errors.New("operand Noise is missing: only the closest neighbours need none")
		}
		n.noise = len(in)
		in = append(in, a.Noise)
	}
	if c := a.Clusters; err == nil && c != nil {
		err = op.Need(c.Candidates >= a.Near, "candidates must be at least near, %d (got %d)", a.Near, c.Candidates)
		n.owner, n.candidates = len(in), c.Candidates
		in = append(in, c.Owner, c.Own, c.Paths, c.Used)
	}
	if err != nil {
		panic(&op.BuildError{Op: "neighbours", Err: err})
	}
	return op.Apply(n.forward(len(in)), in...)
}

// Operands of the op; noise and those of the clusters follow.
const (
	nbX = iota
	nbQueue
	nbFilled
)

// Operands of the clusters, from that of the owners on.
const (
	nbOwner = iota
	nbOwn
	nbPaths
	nbUsed
)

// neighbours describes the op. noise and owner are the positions of operands, -1 without.
type neighbours struct {
	near, count  int
	law          string
	noise, owner int
	candidates   int
}

func (n *neighbours) args() string {
	return fmt.Sprintf("near=%d count=%d law=%s noise=%d owner=%d candidates=%d", n.near, n.count, n.law, n.noise,
		n.owner, n.candidates)
}

func (n *neighbours) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, queue := in[nbX], in[nbQueue]
	if err := op.Need(len(x) == 2 && len(queue) == 2 && x[1] == queue[1],
		"want anchors (B, D') and a queue (Q, D')"); err != nil {
		return nil, err
	}
	if err := op.All(
		op.Need(n.near <= queue[0], "a queue of %d rows cannot hold the nearest %d", queue[0], n.near),
		op.WantShape(in, nbFilled, "filled"),
		op.WantShape(in, n.noise, "noise", x[0], n.near),
	); err != nil {
		return nil, err
	}
	if n.owner >= 0 {
		paths := in[n.owner+nbPaths]
		if err := op.All(
			op.WantShape(in, n.owner+nbOwner, "owner", queue[0]),
			op.WantShape(in, n.owner+nbOwn, "own clusters", x[0]), op.WantShape(in, n.owner+nbUsed, "used"),
			op.Need(len(paths) == 2 && paths[0] == paths[1], "paths must have shape (K, K) (got %v)", paths),
		); err != nil {
			return nil, err
		}
	}
	return tensor.Shape{x[0], n.count}, nil
}

func (n *neighbours) forward(operands int) *op.Op {
	return &op.Op{
		Kind: "neighbours", Args: n.args(), Ints: true, Diff: make([]bool, operands), Shape: n.shape,
		Scratch: func(in []tensor.Shape, _ int) int {
			b, q := in[nbX][0], in[nbQueue][0]
			return q + min(b, neighbourAnchors)*(min(q, neighbourColumns)+n.near)
		},
		FLOPs: func(in []tensor.Shape) int64 {
			rows := in[nbQueue][0]
			if n.owner >= 0 {
				rows = min(rows, n.candidates)
			}
			return 2 * int64(in[nbX].TotalSize()) * int64(rows)
		},
		Host: func(c *exec.Call) (exec.Step, error) { return newNeighbourRun(n, c).step, nil },
		On: oncuda.Neighbours{
			Near: n.near, Count: n.count, Law: slices.Index([]string{Closest, Uniform, Biased}, n.law), Noise: n.noise,
			Owner:      n.owner,
			Candidates: n.candidates,
		}.Step(),
		Grad: func(in gorgonia.Nodes, _, _ *gorgonia.Node) gorgonia.Nodes {
			return make(gorgonia.Nodes, len(in))
		},
	}
}
