package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// clusterMembers lists the columns of a pool by cluster, of K: int32 (K+1+N), where the
// columns of cluster k are values [x[k], x[k+1]) after the first K+1, in ascending order.
// Columns that do not exist are in no list, and with count 0 none is. An owner outside of
// [0, K) is an error of the run: those that read owners afterwards need not look.
// Scores of one pool and graph share the lists, since equal ops are one node.
func clusterMembers(a GeodesicArgs) *gorgonia.Node {
	clusters := 0
	if s := a.Distances.Shape(); len(s) == 2 {
		clusters = s[1]
	}
	const count = 0
	at, in := Pool{Keys: a.KeyOwner, Queue: a.Owner, Pointer: a.Pool.Pointer, Cols: a.Pool.Cols}.operands(gorgonia.Nodes{a.Count})
	return apply(&op{
		kind: "cluster members", args: fmt.Sprintf("clusters=%d %s", clusters, at.args()), ints: true, diff: make([]bool, len(in)),
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			owner, keys := in[at.queue], in[at.keys]
			if err := all(
				need(clusters > 0, "want distances (B, K)"),
				need(len(in[count]) == 0, "count must be a scalar (got %v)", in[count]),
				need(len(owner) == 1 && len(keys) == 1, "want the owners of the queue (N) and of the keys (B2)"),
				need(len(in[at.pointer]) == 0, "pointer must be a scalar (got %v)", in[at.pointer]),
				wantShape(in, at.cols, "cols"),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{clusters + 1 + owner[0]}, need(keys[0] <= owner[0], "a batch of %d rows does not fit into a queue of %d", keys[0], owner[0])
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			s := new(poolState)
			return func() error {
				if err := s.read(c, at); err != nil {
					return err
				}
				starts, lists := c.Out.I32[:clusters+1], c.Out.I32[clusters+1:]
				clear(starts)
				if c.In[count].I32[0] == 0 {
					return nil
				}
				return sortByOwner(c, at, s, starts, lists)
			}, nil
		},
	}, in...)
}

// sortByOwner fills the lists by counting.
func sortByOwner(c *exec.Call, at poolOperands, s *poolState, starts, lists []int32) error {
	owners := func(g segment) []int32 {
		x := c.In[at.queue].I32
		if g.batch {
			x = c.In[at.keys].I32
		}
		return x[g.row : g.row+g.n]
	}
	clusters := len(starts) - 1
	for _, g := range s.segments {
		for j, k := range owners(g) {
			if uint(k) >= uint(clusters) {
				return fmt.Errorf("ops: geodesic: column %d belongs to centre %d: want [0, %d)", g.col+j, k, clusters)
			}
			starts[k+1]++
		}
	}
	for k := range clusters {
		starts[k+1] += starts[k]
	}
	for _, g := range s.segments { // starts[k] runs through the list of k
		for j, k := range owners(g) {
			lists[starts[k]] = int32(g.col + j)
			starts[k]++
		}
	}
	copy(starts[1:], starts[:clusters]) // and ends where the next begins
	starts[0] = 0
	return nil
}

// idColumns links the columns that share an id with a row: int32 (B+N), where value i is
// the first column of row i and value B+j the next one after column j with the same id,
// -1 for none. rowIDs is (B), colIDs (N), cols the number of columns that exist or nil.
func idColumns(rowIDs, colIDs, cols *gorgonia.Node) *gorgonia.Node {
	in := gorgonia.Nodes{rowIDs, colIDs}
	if cols != nil {
		in = append(in, cols)
	}
	return apply(&op{
		kind: "id columns", ints: true, diff: make([]bool, len(in)),
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := need(len(in[0]) == 1 && len(in[1]) == 1, "want ids of rows (B) and columns (N)"); err != nil {
				return nil, err
			}
			if len(in) == 3 {
				return tensor.Shape{in[0][0] + in[1][0]}, wantShape(in, 2, "cols")
			}
			return tensor.Shape{in[0][0] + in[1][0]}, nil
		},
		aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: tensor.Shape{2 * tableSize(in[0][0])}, Int: true}}
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, total := c.In[0].Dim(0), c.In[1].Dim(0)
			m := newMatch(chains{first: c.Out.I32[:rows], next: c.Out.I32[rows:], table: c.Aux[0].I32})
			return func() error {
				n := total
				if len(c.In) == 3 {
					if n = int(c.In[2].I32[0]); n < 0 || n > total {
						return fmt.Errorf("ops: id columns: cols is %d: want [0, %d]", n, total)
					}
				}
				m.run(c.Engine, c.In[0].I32, c.In[1].I32[:n])
				return nil
			}, nil
		},
	}, in...)
}
