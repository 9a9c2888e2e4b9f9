package geometric

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// groupsOf returns how many groups of channels are normalised where the head asks for so
// many. Without any, Unit makes the whole row one.
func (o Options) groupsOf(groups int) int {
	if groups == 0 && o.Scale == Unit {
		return 1
	}
	return groups
}

// neighbourhood works on the K points of one anchor. It belongs to one thread.
type neighbourhood struct {
	Options
	k int
	// d2 holds squared distances before Relative divides them, w a kernel matrix (K, K),
	// e the gradient for d2.
	d2, w, e []float32
	sums     []float32 // (K) of the rows of the kernel matrix before their division
	sq       []float32 // (K) squared norms of the points
	scales   []float32 // (K) factors of points that are scaled as they are measured
	diff     []float32 // of two points
	mean     float32   // of d2 over pairs of different points, where Relative divides by it, else 1
}

// working returns the float32 values that a neighbourhood of k points works with, where no
// point has more than width values.
func working(k, width int) int { return 3*k*k + 3*k + width }

// use makes it one of k points of at most width values, with memory of working(k, width).
func (w *neighbourhood) use(o Options, k, width int, memory []float32) {
	w.Options, w.k = o, k
	for _, s := range []struct {
		at *[]float32
		n  int
	}{{&w.d2, w.k * w.k}, {&w.w, w.k * w.k}, {&w.e, w.k * w.k}, {&w.sums, w.k}, {&w.sq, w.k}, {&w.scales, w.k},
		{&w.diff, width}} {
		*s.at, memory = memory[:s.n:s.n], memory[s.n:]
	}
}

// measureRaw computes the squared distances of points x (K, n), scaled to unit length
// where Unit asks for it.
func (w *neighbourhood) measureRaw(x []float32, n int) {
	unit := w.Scale == Unit
	for i := range w.k {
		s := vector.SumSq(x[i*n : (i+1)*n])
		w.scales[i], w.sq[i] = 1, float32(s)
		if unit {
			f := 1 / max(math.Sqrt(s), normFloor)
			w.scales[i], w.sq[i] = float32(f), float32(s*f*f)
		}
	}
	for i := range w.k {
		for j := range i {
			vector.Axpby(w.diff[:n], w.scales[i], x[i*n:(i+1)*n], -w.scales[j], x[j*n:(j+1)*n])
			w.set(i, j, w.diff[:n])
		}
	}
	w.finish()
}

// measure computes the squared distances of points x (K, n) as they are.
func (w *neighbourhood) measure(x []float32, n int) {
	for i := range w.k {
		w.sq[i] = float32(vector.SumSq(x[i*n : (i+1)*n]))
		for j := range i {
			vector.Sub(w.diff[:n], x[i*n:(i+1)*n], x[j*n:(j+1)*n])
			w.set(i, j, w.diff[:n])
		}
	}
	w.finish()
}

// set stores the squared distance of points i and j, whose difference is diff.
func (w *neighbourhood) set(i, j int, diff []float32) {
	s := float32(vector.SumSq(diff))
	if s <= coincide*(w.sq[i]+w.sq[j]) {
		s = 0
	}
	w.d2[i*w.k+j], w.d2[j*w.k+i] = s, s
}

// finish completes the distances.
func (w *neighbourhood) finish() {
	for i := range w.k {
		w.d2[i*w.k+i] = 0
	}
	w.mean = 1
	if w.Scale != Relative || w.k < 2 {
		return
	}
	var sum float64
	for i := range w.k {
		sum += float64(vector.Sum(w.d2[i*w.k : (i+1)*w.k]))
	}
	if w.mean = float32(sum / float64(w.k*(w.k-1))); w.mean == 0 {
		w.mean = 1 // all coincide
	}
}

// weights writes the kernel matrix of the distances to dst (K, K).
func (w *neighbourhood) weights(dst []float32) {
	for i := range w.k {
		d2, row := w.d2[i*w.k:(i+1)*w.k], dst[i*w.k:(i+1)*w.k]
		switch w.Kernel {
		case Heat:
			vector.Scale(row, -1/(4*w.Epsilon*w.mean), d2)
			vector.Exp(row, row)
		case Linear:
			for j, v := range d2 {
				row[j] = float32(math.Sqrt(float64(v / w.mean)))
			}
		case Squared:
			vector.Scale(row, 1/w.mean, d2)
		default:
			for j, v := range d2 {
				row[j] = 1 / (1 + v/w.mean)
			}
		}
		if w.sums[i] = vector.Sum(row); w.sums[i] == 0 {
			continue // stays 0
		}
		vector.Scale(row, 1/w.sums[i], row)
	}
}

// compare returns || T - W ||_F^2 for the kernel matrix T of the points before the head
// and leaves in e the gradient of scale times it for the distances.
//
// With G = 2 (W - T), W_ij = k_ij / r_i and a_i = sum_l G_il W_il it is for k_ij
// (G_ij - a_i) / r_i. Where distances are divided by their mean m, e_ij for the divided
// ones becomes e_ij/m - (sum_kl e_kl d_kl) / (m^2 K (K-1)) for d_ij.
func (w *neighbourhood) compare(target []float32, scale float32) float32 {
	var loss, along float64
	for i := range w.k {
		at, to := i*w.k, (i+1)*w.k
		row, d2, e := w.w[at:to], w.d2[at:to], w.e[at:to]
		vector.Sub(e, row, target[at:to])
		loss += vector.SumSq(e)
		r := w.sums[i]
		if r == 0 {
			clear(e)
			continue
		}
		a := vector.Dot(e, row)
		for j, g := range e {
			e[j] = 2 * scale * (g - a) * w.slope(row[j], r)
		}
		e[i] = 0
		if w.Scale == Relative {
			along += float64(vector.Dot(e, d2))
		}
	}
	if w.Scale != Relative || w.k < 2 {
		return float32(loss)
	}
	m := float64(w.mean)
	shift := float32(along / (m * m * float64(w.k*(w.k-1))))
	for i, v := range w.e {
		w.e[i] = v/w.mean - shift
	}
	return float32(loss)
}

// slope returns dk/d(d2) / r for a value k = r*v of the kernel.
func (w *neighbourhood) slope(v, r float32) float32 {
	switch w.Kernel {
	case Heat:
		return -v / (4 * w.Epsilon)
	case Linear:
		if v == 0 { // points that coincide
			return 0
		}
		return 1 / (2 * r * r * v)
	case Squared:
		return 1 / r
	default:
		return -v * v * r
	}
}

// spread adds to dx (K, C) the gradient for points x (K, C) of that for their distances:
// dx_i = sum_j 2 (e_ij + e_ji) (x_i - x_j). Differences are taken first, since sums of
// near points times large factors would cancel; that of points that coincide is rounding.
func (w *neighbourhood) spread(dx, x []float32) {
	n := len(x) / w.k
	for i := range w.k {
		for j := range i {
			f := 2 * (w.e[i*w.k+j] + w.e[j*w.k+i])
			if f == 0 || w.d2[i*w.k+j] == 0 {
				continue
			}
			vector.Sub(w.diff[:n], x[i*n:(i+1)*n], x[j*n:(j+1)*n])
			vector.Axpy(dx[i*n:(i+1)*n], f, w.diff[:n])
			vector.Axpy(dx[j*n:(j+1)*n], -f, w.diff[:n])
		}
	}
}

// length returns the norm that a group of channels gets: whole rows become unit vectors
// with Unit, groups otherwise.
func (w *neighbourhood) length(groups int) float32 {
	if w.Scale == Unit {
		return float32(1 / math.Sqrt(float64(groups)))
	}
	return 1
}

// normalise divides the groups of each point in z by their norms, which it stores.
func (w *neighbourhood) normalise(z, norms []float32, groups int) {
	if groups == 0 {
		return
	}
	n, length := len(z)/(w.k*groups), w.length(groups)
	for g := range w.k * groups {
		x := z[g*n : (g+1)*n]
		norms[g] = float32(math.Sqrt(vector.SumSq(x)))
		vector.Scale(x, length/max(norms[g], normFloor), x)
	}
}

// normaliseGrad turns the gradient dz for normalised points z into that for what was
// normalised: l/|x| (dz - z (z.dz)/l^2) where groups have length l.
func (w *neighbourhood) normaliseGrad(dz, z, norms []float32, groups int) {
	if groups == 0 {
		return
	}
	n, length := len(z)/(w.k*groups), w.length(groups)
	for g := range w.k * groups {
		x, dx := z[g*n:(g+1)*n], dz[g*n:(g+1)*n]
		if norms[g] < normFloor {
			vector.Scale(dx, length/normFloor, dx)
			continue
		}
		f := length / norms[g]
		vector.Axpby(dx, f, dx, -f*vector.Dot(x, dx)/(length*length), x)
	}
}
