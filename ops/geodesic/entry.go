package geodesic

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/geodesic/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// EntryArgs are the operands of CentreDistances.
type EntryArgs struct {
	X       *gorgonia.Node // (R, C) points of Space, unit rows on one sphere
	Centres *gorgonia.Node // (K, C) points of Space
	Paths   *gorgonia.Node // (K, K) distances between centres, +Inf without a path
	Count   *gorgonia.Node // int32 scalar in [0, K]: centres in use, the first ones
	// Entries M is the number of centres that a row may enter the graph by, its nearest
	// ones; at most K.
	Entries int
	// Softness T is the temperature of the minimum over several entries, in radians; of
	// no meaning with one.
	Softness float32
	// Space is where the rows lie, one sphere if it is zero. The nearest
	// centres are those of the smallest chord, and angle(x, c) is the distance of the space.
	Space space.Space
}

// CentreDistances returns the lengths of the paths from each row to every centre, in
// radians: E (R, K). With one entry, the nearest centre n_i, they are those of eq. 3 of
// Mei et al.,
//
//	E_ik = angle(x_i, c_n_i) + paths[n_i, k]
//
// and with M of them a soft minimum over the M nearest centres m,
//
//	E_ik = -T log sum_m exp(-d_imk / T),  d_imk = angle(x_i, c_m) + paths[m, k]
//
// which is smooth, has gradient exp((E_ik - d_imk)/T) for d_imk, and lies below the
// shortest of the d_imk by at most T log M. It may be negative.
//
// A centre without a path from any entry, and one that is not in use, is at +Inf and
// takes no part in the gradient, which goes to X alone. With count 0 everything is 0.
// A row that is not finite gets NaN.
func CentreDistances(a EntryArgs) *gorgonia.Node {
	e := entry{entries: a.Entries, softness: a.Softness, local: local{a.Space}}
	if a.Entries == 1 {
		e.softness = 0
	}
	return op.Apply(e.forward(), a.X, a.Centres, a.Paths, a.Count)
}

// entry describes the op.
type entry struct {
	entries  int
	softness float32
	local    local
}

// onCUDA is the op as its steps for the CUDA device know it.
func (e entry) onCUDA() oncuda.Entry {
	return oncuda.Entry{Entries: e.entries, Softness: e.softness, Space: e.local.Space}
}

func (e entry) args() string {
	return fmt.Sprintf("entries=%d softness=%g%s", e.entries, e.softness, e.local.args())
}

// Operands of the op and auxiliary results: the entries of each row and their cosines.
const (
	entryX = iota
	entryCentres
	entryPaths
	entryCount

	entryIndex = 0 // (R, M) int32
	entryDots  = 1 // (R, M); off one sphere the local distances
)

func (e entry) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkCentres(in); err != nil {
		return nil, err
	}
	k := in[entryCentres][0]
	return tensor.Shape{in[entryX][0], k}, op.All(
		e.local.Check(in[entryX][1]),
		op.WantShape(in, entryPaths, "paths", k, k),
		op.WantShape(in, entryCount, "count"),
		op.Need(e.entries >= 1 && e.entries <= k, "entries must be in [1, %d] (got %d)", k, e.entries),
		op.Need(e.entries == 1 || e.softness > 0 && e.softness < math.MaxFloat32, "softness must be above 0 (got %v)",
			e.softness),
	)
}

func (e entry) forward() *op.Op {
	o := &op.Op{Kind: "centre distances", Args: e.args(), Shape: e.shape, Diff: []bool{true, false, false, false},
		On: e.onCUDA().Forward()}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		s := tensor.Shape{in[entryX][0], e.entries}
		return []exec.AuxSpec{entryIndex: {Shape: s, Int: true}, entryDots: {Shape: s}}
	}
	o.FLOPs = centreFLOPs
	o.Scratch = func(in []tensor.Shape, threads int) int {
		k := in[entryCentres][0]
		return in[entryX][0]*k + e.local.floats(in) + threads*(e.entries+2*k)
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		d, total := newCentreDots(c, e.local), c.Out.Dim(1)
		work := c.Scratch[d.rows*total+e.local.floats([]tensor.Shape{c.In[entryX].Shape, c.In[entryCentres].Shape}):]
		body := func(worker, lo, hi int) {
			w := work[worker*(e.entries+2*total) : (worker+1)*(e.entries+2*total)]
			for r := lo; r < hi; r++ {
				e.row(c, d, r, w)
			}
		}
		return func() error {
			if err := d.run(c.In[entryCount].I32[0]); err != nil {
				return err
			}
			if d.count == 0 {
				clear(c.Out.F32)
				return nil
			}
			c.Engine.For(d.rows, 1, body)
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{op.Apply(e.backward(), append(append(gorgonia.Nodes{}, in...), out, dy)...), nil, nil,
			nil}
	}
	return o
}

// used returns how many entries a row has in a graph of count centres.
func (e entry) used(count int) int { return min(e.entries, count) }

// row computes row r of the distances with the memory w.
func (e entry) row(c *exec.Call, d *centreDots, r int, w []float32) {
	k, m := c.Out.Dim(1), e.used(d.count)
	index, dots := c.Aux[entryIndex].I32[r*e.entries:][:m], c.Aux[entryDots].F32[r*e.entries:][:m]
	nearestFew(index, dots, d.row(r))
	angles, out := w[:m], c.Out.F32[r*k:(r+1)*k]
	if e.local.One() {
		vector.Acos(angles, dots, vector.AcosLimit)
	} else {
		for j, n := range index {
			dots[j] = d.distance(r, int(n))
		}
		copy(angles, dots)
	}
	paths := c.In[entryPaths].F32
	vector.Fill(out[d.count:], float32(math.Inf(1)))
	out = out[:d.count]
	if m == 1 {
		for i, p := range paths[int(index[0])*k:][:len(out)] {
			out[i] = angles[0] + p
		}
		return
	}
	vector.Fill(out, float32(math.Inf(1)))
	for j, n := range index { // the shortest path
		for i, p := range paths[int(n)*k:][:len(out)] {
			if v := angles[j] + p; !(v >= out[i]) {
				out[i] = v
			}
		}
	}
	sum, x := w[e.entries:][:len(out)], w[e.entries+k:][:len(out)]
	clear(sum)
	for j, n := range index {
		for i, p := range paths[int(n)*k:][:len(out)] {
			x[i] = (out[i] - (angles[j] + p)) / e.softness
		}
		vector.Exp(x, x)
		vector.Add(sum, sum, x)
	}
	for i, s := range sum {
		if out[i] <= math.MaxFloat32 {
			out[i] -= e.softness * float32(math.Log(float64(s)))
		}
	}
}

// nearestFew sets index to the len(index) largest values of dots, largest first and of
// equal ones the first, and values to these. It overwrites dots.
func nearestFew(index []int32, values, dots []float32) {
	for i := range index {
		k := vector.ArgMax(dots)
		index[i], values[i] = int32(k), finite(dots[k])
		dots[k] = float32(math.Inf(-1))
	}
}

// backward returns dx for the operands of the op, its output and the gradient dE of that.
func (e entry) backward() *op.Op {
	const out, dy = entryCount + 1, entryCount + 2
	o := &op.Op{Kind: "centre distances dx", Args: e.args(), Diff: make([]bool, dy+1), On: e.onCUDA().Backward()}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		return in[entryX].Clone(), op.Need(in[dy].Eq(in[out]), "dy must have shape %v (got %v)", in[out], in[dy])
	}
	o.Scratch = func(in []tensor.Shape, threads int) int { return threads * (e.entries + in[entryCentres][0]) }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		k := c.In[out].Dim(1)
		rows, count := c.In[out].Dim(0), 0
		body := func(worker, lo, hi int) {
			w := c.Scratch[worker*(e.entries+k) : (worker+1)*(e.entries+k)]
			for r := lo; r < hi; r++ {
				e.rowGradient(c, r, c.In[out].F32[r*k:][:count], c.In[dy].F32[r*k:][:count], w)
			}
		}
		return func() error {
			if count = int(c.In[entryCount].I32[0]); count == 0 {
				clear(c.Out.F32)
				return nil
			}
			c.Engine.For(rows, 1, body)
			return nil
		}, nil
	}
	return o
}

// rowGradient computes row r of dx for distances d and their gradient dy.
func (e entry) rowGradient(c *exec.Call, r int, d, dy, w []float32) {
	k, width, m := c.In[entryPaths].Dim(0), c.Out.Dim(1), e.used(len(d))
	index := c.InAux[entryCount+1][entryIndex].I32[r*e.entries:][:m]
	dots := c.InAux[entryCount+1][entryDots].F32[r*e.entries:][:m]
	g, x := w[:m], w[e.entries:][:len(d)]
	if e.local.One() {
		vector.Acos(g, dots, vector.AcosLimit)
	} else {
		copy(g, dots)
	}
	for j, n := range index {
		angle, paths := g[j], c.In[entryPaths].F32[int(n)*k:][:len(d)]
		if m == 1 {
			g[j] = sumFinite(d, dy)
			continue
		}
		for i, p := range paths {
			x[i] = (d[i] - (angle + p)) / e.softness
		}
		vector.Exp(x, x)
		var sum float64
		for i, v := range x {
			if v > 0 || v != v && d[i] != d[i] { // NaN also for a centre without a path
				sum += float64(v) * float64(dy[i])
			}
		}
		g[j] = float32(sum)
	}
	out := c.Out.F32[r*width : (r+1)*width]
	clear(out)
	if !e.local.One() {
		row := c.In[entryX].F32[r*width : (r+1)*width]
		for j, n := range index {
			e.local.addGradient(out, g[j], row, c.In[entryCentres].F32[int(n)*width:][:width], dots[j])
		}
		return
	}
	vector.AcosGrad(g, dots, g, vector.AcosLimit)
	for j, n := range index {
		if g[j] != 0 {
			vector.Axpy(out, g[j], c.In[entryCentres].F32[int(n)*width:][:width])
		}
	}
}

// sumFinite returns the sum of dy over the distances that are not infinite.
func sumFinite(d, dy []float32) float32 {
	var sum float64
	for i, v := range d {
		if !(v > math.MaxFloat32) {
			sum += float64(dy[i])
		}
	}
	return float32(sum)
}
