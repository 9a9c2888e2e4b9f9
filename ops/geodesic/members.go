package geodesic

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/geodesic/internal/oncuda"
	"github.com/geoalign/geoalign/ops/internal/chain"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pool"
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
	at, in := pool.Pool{Keys: a.KeyOwner, Queue: a.Owner, Pointer: a.Pool.Pointer,
		Cols: a.Pool.Cols}.Operands(gorgonia.Nodes{a.Count})
	return op.Apply(&op.Op{
		Kind: "cluster members", Args: fmt.Sprintf("clusters=%d %s", clusters, at.Args()), Ints: true,
		Diff: make([]bool, len(in)),
		On:   oncuda.Members(at, clusters),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			owner, keys := in[at.Queue], in[at.Keys]
			if err := op.All(
				op.Need(clusters > 0, "want distances (B, K)"),
				op.Need(len(in[count]) == 0, "count must be a scalar (got %v)", in[count]),
				op.Need(len(owner) == 1 && len(keys) == 1, "want the owners of the queue (N) and of the keys (B2)"),
				op.Need(len(in[at.Pointer]) == 0, "pointer must be a scalar (got %v)", in[at.Pointer]),
				op.WantShape(in, at.Cols, "cols"),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{clusters + 1 + owner[0]},
				op.Need(keys[0] <= owner[0], "a batch of %d rows does not fit into a queue of %d", keys[0], owner[0])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			s := new(pool.State)
			return func() error {
				if err := s.Read(c, at); err != nil {
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
func sortByOwner(c *exec.Call, at pool.Operands, s *pool.State, starts, lists []int32) error {
	owners := func(g pool.Segment) []int32 {
		x := c.In[at.Queue].I32
		if g.Batch {
			x = c.In[at.Keys].I32
		}
		return x[g.Row : g.Row+g.N]
	}
	clusters := len(starts) - 1
	for _, g := range s.Segments {
		for j, k := range owners(g) {
			if uint(k) >= uint(clusters) {
				return fmt.Errorf("ops: geodesic: column %d belongs to centre %d: want [0, %d)", g.Col+j, k, clusters)
			}
			starts[k+1]++
		}
	}
	for k := range clusters {
		starts[k+1] += starts[k]
	}
	for _, g := range s.Segments { // starts[k] runs through the list of k
		for j, k := range owners(g) {
			lists[starts[k]] = int32(g.Col + j)
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
	return op.Apply(&op.Op{
		Kind: "id columns", Ints: true, Diff: make([]bool, len(in)), On: oncuda.IDColumns(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 1 && len(in[1]) == 1, "want ids of rows (B) and columns (N)"); err != nil {
				return nil, err
			}
			if len(in) == 3 {
				return tensor.Shape{in[0][0] + in[1][0]}, op.WantShape(in, 2, "cols")
			}
			return tensor.Shape{in[0][0] + in[1][0]}, nil
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: tensor.Shape{2 * chain.TableSize(in[0][0])}, Int: true}}
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, total := c.In[0].Dim(0), c.In[1].Dim(0)
			m := chain.New(chain.Chains{First: c.Out.I32[:rows], Next: c.Out.I32[rows:], Table: c.Aux[0].I32})
			return func() error {
				n := total
				if len(c.In) == 3 {
					if n = int(c.In[2].I32[0]); n < 0 || n > total {
						return fmt.Errorf("ops: id columns: cols is %d: want [0, %d]", n, total)
					}
				}
				m.Run(c.Engine, c.In[0].I32, c.In[1].I32[:n])
				return nil
			}, nil
		},
	}, in...)
}
