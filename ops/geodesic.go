package ops

import (
	"errors"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// GeodesicArgs are the operands of Geodesic: rows F, a pool of N columns x_j, and a graph
// of K bottom centres over the pool.
type GeodesicArgs struct {
	F         *gorgonia.Node // (B, C) points of Local: unit rows, or see there
	Distances *gorgonia.Node // (B, K) distances from the rows to the centres, of CentreDistances
	Nearest   *gorgonia.Node // (B) int32, the rows' own clusters in this graph, of NearestCentre; for SameCluster
	Pool      Pool           // points of Local

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
	// Local is the metric of the rows, the angle on one sphere if it is zero: reaches,
	// direct angles and Limit are in its unit. On m spheres a cosine, where there is no
	// graph or with StraightThrough, is the mean over the spheres. Euclidean features have
	// cos(min(|f-x|, limit) pi/limit) without a graph, and with StraightThrough the
	// gradient of -|f-x| pi/limit.
	Local Local
}

// Geodesic returns the geodesic scores of rows and pool, (B, N) in [-1, 1]:
//
//	s_ij     = cos(min(theta_ij, limit) * pi/limit)
//	theta_ij = E[i, owner_j] + reach_j
//
// eq. 3 of Mei et al. with their angle normalisation: the path
// from row i to the centre of column j and on to the column. A pair without a path has
// score -1. Flags put arccos(F_i . x_j), limited as ArcCos limits it, in the place of
// theta_ij for some pairs, or with another Local the local distance. With count 0 the
// scores are the cosines F_i . x_j, and so is their gradient; see Local for others.
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
		panic(&BuildError{Op: "geodesic", Err: err})
	}
	in := gorgonia.Nodes{a.F, a.Distances, a.Owner, a.Reach, a.KeyOwner, a.KeyReach, a.Count}
	in = append(in, clusterMembers(a))
	x.pool, in = a.Pool.operands(in)
	if a.SameCluster {
		x.nearest = len(in)
		in = append(in, a.Nearest)
	}
	if a.DirectPositives && a.RowIDs != nil {
		x.positives = len(in)
		in = append(in, idColumns(a.RowIDs, a.ColIDs, a.Pool.Cols))
	}
	x.operands = len(in)
	return apply(x.forward(), in...)
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
	pool               poolOperands
	nearest, positives int
	operands           int
}

// checkArgs looks at what does not depend on shapes.
func (x *geodesic) checkArgs() error {
	for _, n := range []struct {
		name string
		node *gorgonia.Node
	}{{"F", x.F}, {"Distances", x.Distances}, {"Pool.Keys", x.Pool.Keys}, {"Pool.Queue", x.Pool.Queue}, {"Pool.Pointer", x.Pool.Pointer},
		{"Owner", x.Owner}, {"Reach", x.Reach}, {"KeyOwner", x.KeyOwner}, {"KeyReach", x.KeyReach}, {"Count", x.Count}} {
		if n.node == nil {
			return fmt.Errorf("operand %s is missing", n.name)
		}
	}
	return all(
		need(x.Nearest != nil || !x.SameCluster, "SameCluster needs Nearest, the rows' own clusters"),
		need((x.RowIDs == nil) == (x.ColIDs == nil), "row and column ids must be given together"),
		need(x.Limit > 0 && x.Limit < math.MaxFloat32, "limit must be above 0 (got %v)", x.Limit),
	)
}

func (x *geodesic) args() string {
	return fmt.Sprintf("%s nearest=%d positives=%d direct=%t same=%t straight=%t limit=%g%s",
		x.pool.args(), x.nearest, x.positives, x.DirectPositives, x.SameCluster, x.StraightThrough, x.Limit, x.Local.args())
}

func (x *geodesic) shape(in []tensor.Shape) (tensor.Shape, error) {
	f, e := in[geoF], in[geoDistances]
	if err := need(len(f) == 2 && len(e) == 2 && e[0] == f[0], "want F (B, C) and distances (B, K)"); err != nil {
		return nil, err
	}
	if err := x.pool.check(in, f[1]); err != nil {
		return nil, err
	}
	b, keys, n := f[0], in[x.pool.keys][0], in[x.pool.queue][0]
	err := all(
		x.Local.check(f[1]),
		wantShape(in, geoOwner, "owner", n), wantShape(in, geoReach, "reach", n),
		wantShape(in, geoKeyOwner, "key owner", keys), wantShape(in, geoKeyReach, "key reach", keys),
		wantShape(in, geoCount, "count"),
		wantShape(in, x.nearest, "nearest", b),
		wantShape(in, x.positives, "columns of ids", b+n),
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
	pool  poolState
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
	if err := r.pool.read(r.c, r.geodesic.pool); err != nil {
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
func (x *geodesic) scoreProduct(c *exec.Call, left int) *poolProduct {
	p := newPoolProduct(c, x.pool, left)
	if !x.Local.one() {
		p.dot.Alpha, p.sum.Alpha = x.Local.mean(), x.Local.mean()
	}
	return p
}

// separation returns what w.dots holds of a pair: its cosine on one sphere, else its
// local distance.
func (r *geodesicRun) separation(i, j int) float32 {
	y := r.pool.feature(r.c, r.geodesic.pool, j)
	if r.Local.one() {
		return finite(kernel.Dot(r.features(i), y))
	}
	return r.Local.distance(r.features(i), y)
}

// toAngles turns separations into local distances.
func (r *geodesicRun) toAngles(angles, separations []float32) {
	if r.Local.one() {
		kernel.Acos(angles, separations, kernel.AcosLimit)
		return
	}
	copy(angles, separations)
}

// eachColumn puts every column that exists into w.
func (r *geodesicRun) eachColumn(i int, w *directWork, flush func()) {
	for j := range r.pool.cols {
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
func (r *geodesicRun) graph(g segment) (owner []int32, reach []float32) {
	if g.batch {
		return r.c.In[geoKeyOwner].I32[g.row : g.row+g.n], r.c.In[geoKeyReach].F32[g.row : g.row+g.n]
	}
	return r.c.In[geoOwner].I32[g.row : g.row+g.n], r.c.In[geoReach].F32[g.row : g.row+g.n]
}
