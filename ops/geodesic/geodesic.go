package geodesic

import (
	"errors"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/geodesic/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pool"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// GeodesicArgs are the operands of Geodesic: rows F, a pool of N columns x_j, and a graph
// of K bottom centres over the pool.
type GeodesicArgs struct {
	F         *gorgonia.Node // (B, C) points of Space: unit rows, or see there
	Distances *gorgonia.Node // (B, K) distances from the rows to the centres, of CentreDistances
	Nearest   *gorgonia.Node // (B) int32, the rows' own clusters in this graph, of NearestCentre; for SameCluster
	Pool      pool.Pool      // points of Space

	Owner *gorgonia.Node // (N) int32, the centre that each row of the queue belongs to
	Reach *gorgonia.Node // (N) the local distance to it
	// KeyOwner (B2) int32 and KeyReach (B2) are those of the batch's keys, of NearestCentre.
	KeyOwner, KeyReach *gorgonia.Node
	Count              *gorgonia.Node // int32 scalar in [0, K]: centres in use; 0: no graph yet

	// RowIDs (B) and ColIDs (N), int32, or nil: see DirectPositives. An id below 0 is
	// that of nobody.
	RowIDs, ColIDs *gorgonia.Node
	// DirectPositives lets no path to a positive be longer than the distance to it, so that
	// a positive never lies where the score has no gradient. Positives
	// are the columns with the row's id, or without ids column (pointer+i) mod N of row i,
	// its own key.
	DirectPositives bool
	// SameCluster takes the local distance to every column of the row's own cluster,
	// as the text of the paper has it.
	SameCluster bool
	// StraightThrough gives F the gradient of plain cosines and Distances none.
	StraightThrough bool
	// Limit is the length at which paths are cut, in radians, above 0; 4 pi in the paper.
	Limit float32
	// Space is where the rows lie, one sphere if it is zero. Its distance is the local one: reaches,
	// direct angles and Limit are in its unit. On m spheres a cosine, where there is no
	// graph or with StraightThrough, is the mean over the spheres. Euclidean features have
	// cos(min(|f-x|, limit) pi/limit) without a graph, and with StraightThrough the
	// gradient of -|f-x| pi/limit.
	Space space.Space
}

// local returns the distance of the space.
func (a GeodesicArgs) local() local { return local{a.Space} }

// Geodesic returns the geodesic scores of rows and pool, (B, N) in [-1, 1]:
//
//	s_ij     = cos(min(theta_ij, limit) * pi/limit)
//	theta_ij = E[i, owner_j] + reach_j
//
// eq. 3 of Mei et al. with their angle normalisation: the path
// from row i to the centre of column j and on to the column. A pair without a path has
// score -1. Flags put arccos(F_i . x_j), limited as in similarity.Distance, in the place of
// theta_ij for some pairs, or in another Space its distance. With count 0 the
// scores are the cosines F_i . x_j, and so is their gradient; see Space for others.
//
// The gradient goes to F, through the pairs with a direct angle, and to Distances,
//
//	dE_ik = sum_{j: owner_j = k} ds_ij * -sin(theta_ij * pi/limit) * pi/limit
//
// over the others, but for paths that are cut; or it is that of cosines, see
// StraightThrough. Columns that do not exist (Pool.Cols) are 0 and have none.
//
// One product of all rows and columns is made only with count 0, or in the gradient of
// StraightThrough.
func Geodesic(a GeodesicArgs) *gorgonia.Node {
	x := &geodesic{GeodesicArgs: a, nearest: -1, positives: -1}
	if err := x.checkArgs(); err != nil {
		panic(&op.BuildError{Op: "geodesic", Err: err})
	}
	in := gorgonia.Nodes{a.F, a.Distances, a.Owner, a.Reach, a.KeyOwner, a.KeyReach, a.Count}
	in = append(in, clusterMembers(a))
	x.pool, in = a.Pool.Operands(in)
	if a.SameCluster {
		x.nearest = len(in)
		in = append(in, a.Nearest)
	}
	if a.DirectPositives && a.RowIDs != nil {
		x.positives = len(in)
		in = append(in, idColumns(a.RowIDs, a.ColIDs, a.Pool.Cols))
	}
	x.operands = len(in)
	return op.Apply(x.forward(), in...)
}

// Operands of the op; those of the pool, the rows' clusters and the positives follow.
const (
	geoF = iota
	geoDistances
	geoOwner
	geoReach
	geoKeyOwner
	geoKeyReach
	geoCount
	geoMembers
)

// geodesic describes the op: its arguments and the positions of operands that follow the
// fixed ones, -1 for those that it does not have.
type geodesic struct {
	GeodesicArgs
	pool               pool.Operands
	nearest, positives int
	operands           int
}

// onCUDA are the scores as their steps for the CUDA device know them.
func (x *geodesic) onCUDA() oncuda.Geodesic {
	return oncuda.Geodesic{
		Space: x.local().Space, SameCluster: x.SameCluster, DirectPositives: x.DirectPositives, Limit: x.Limit,
		Pool: x.pool, Nearest: x.nearest, Positives: x.positives,
	}
}

// checkArgs looks at what does not depend on shapes.
func (x *geodesic) checkArgs() error {
	for _, n := range []struct {
		name string
		node *gorgonia.Node
	}{{"F", x.F}, {"Distances", x.Distances}, {"Pool.Keys", x.Pool.Keys}, {"Pool.Queue", x.Pool.Queue},
		{"Pool.Pointer", x.Pool.Pointer},
		{"Owner", x.Owner}, {"Reach", x.Reach}, {"KeyOwner", x.KeyOwner}, {"KeyReach", x.KeyReach},
		{"Count", x.Count}} {
		if n.node == nil {
			return fmt.Errorf("operand %s is missing", n.name)
		}
	}
	return op.All(
		op.Need(x.Nearest != nil || !x.SameCluster, "SameCluster needs Nearest, the rows' own clusters"),
		op.Need((x.RowIDs == nil) == (x.ColIDs == nil), "row and column ids must be given together"),
		op.Need(x.Limit > 0 && x.Limit < math.MaxFloat32, "limit must be above 0 (got %v)", x.Limit),
	)
}

func (x *geodesic) args() string {
	return fmt.Sprintf("%s nearest=%d positives=%d direct=%t same=%t straight=%t limit=%g%s",
		x.pool.Args(), x.nearest, x.positives, x.DirectPositives, x.SameCluster, x.StraightThrough, x.Limit,
		x.local().args())
}

func (x *geodesic) shape(in []tensor.Shape) (tensor.Shape, error) {
	f, e := in[geoF], in[geoDistances]
	if err := op.Need(len(f) == 2 && len(e) == 2 && e[0] == f[0], "want F (B, C) and distances (B, K)"); err != nil {
		return nil, err
	}
	if err := x.pool.Check(in, f[1]); err != nil {
		return nil, err
	}
	b, keys, n := f[0], in[x.pool.Keys][0], in[x.pool.Queue][0]
	err := op.All(
		x.Space.Check(f[1]),
		op.WantShape(in, geoOwner, "owner", n), op.WantShape(in, geoReach, "reach", n),
		op.WantShape(in, geoKeyOwner, "key owner", keys), op.WantShape(in, geoKeyReach, "key reach", keys),
		op.WantShape(in, geoCount, "count"),
		op.WantShape(in, x.nearest, "nearest", b),
		op.WantShape(in, x.positives, "columns of ids", b+n),
	)
	if err == nil && x.DirectPositives && x.positives < 0 && b > keys {
		err = errors.New("rows without a key of their own have no positive: give ids, or as many keys as rows")
	}
	return tensor.Shape{b, n}, err
}

// geodesicRun is what a step knows of its run.
type geodesicRun struct {
	*geodesic
	c     *exec.Call
	pool  pool.State
	count int
	work  []directWork // one for each thread
}

func (x *geodesic) newRun(c *exec.Call) *geodesicRun {
	r := &geodesicRun{geodesic: x, c: c, work: make([]directWork, c.Engine.Threads())}
	for i := range r.work {
		r.work[i].cols = make([]int32, directBlock)
		r.work[i].none = make([]int32, directBlock)
	}
	return r
}

// begin reads the scalars of a run.
func (r *geodesicRun) begin() error {
	if err := r.pool.Read(r.c, r.geodesic.pool); err != nil {
		return err
	}
	k := r.c.In[geoDistances].Dim(1)
	if r.count = int(r.c.In[geoCount].I32[0]); r.count < 0 || r.count > k {
		return fmt.Errorf("ops: geodesic: count is %d: want [0, %d]", r.count, k)
	}
	if r.count == 0 || r.nearest < 0 {
		return nil
	}
	for i, n := range r.c.In[r.nearest].I32 {
		if n < 0 || int(n) >= k {
			return fmt.Errorf("ops: geodesic: cluster %d of row %d: want [0, %d)", n, i, k)
		}
	}
	return nil
}

// distances returns row i of E.
func (r *geodesicRun) distances(i int) []float32 {
	k := r.c.In[geoDistances].Dim(1)
	return r.c.In[geoDistances].F32[i*k : (i+1)*k]
}

// scoreProduct is the product of rows and pool that stands for scores without a graph.
func (x *geodesic) scoreProduct(c *exec.Call, left int) *pool.Product {
	p := pool.NewProduct(c, x.pool, left)
	if !x.Space.One() {
		p.Dot.Alpha, p.Sum.Alpha = x.local().mean(), x.local().mean()
	}
	return p
}

// separation returns what w.dots holds of a pair: its cosine on one sphere, else its
// local distance.
func (r *geodesicRun) separation(i, j int) float32 {
	y := r.pool.Feature(r.c, r.geodesic.pool, j)
	if r.Space.One() {
		return finite(vector.Dot(r.features(i), y))
	}
	return r.local().distance(r.features(i), y)
}

// toAngles turns separations into local distances.
func (r *geodesicRun) toAngles(angles, separations []float32) {
	if r.Space.One() {
		vector.Acos(angles, separations, vector.AcosLimit)
		return
	}
	copy(angles, separations)
}

// eachColumn puts every column that exists into w.
func (r *geodesicRun) eachColumn(i int, w *directWork, flush func()) {
	for j := range r.pool.Cols {
		w.cols[w.n], w.dots[w.n] = int32(j), r.separation(i, j)
		if w.n++; w.n == directBlock {
			flush()
		}
	}
	if w.n > 0 {
		flush()
	}
}

// graph returns the owners and reaches of the columns of segment g.
func (r *geodesicRun) graph(g pool.Segment) (owner []int32, reach []float32) {
	if g.Batch {
		return r.c.In[geoKeyOwner].I32[g.Row : g.Row+g.N], r.c.In[geoKeyReach].F32[g.Row : g.Row+g.N]
	}
	return r.c.In[geoOwner].I32[g.Row : g.Row+g.N], r.c.In[geoReach].F32[g.Row : g.Row+g.N]
}
