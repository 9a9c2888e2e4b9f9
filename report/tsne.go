package report

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// TSNEOptions are the options of TSNE; a zero field means its default.
type TSNEOptions struct {
	Perplexity float64 // effective number of neighbours; 0: 30, at most a third of the points
	Steps      int     // of gradient descent; 0: 500
	Seed       uint64  // of the jitter that parts equal points
}

// Constants of the descent (van der Maaten & Hinton 2008, section 3.4, with the early
// exaggeration and the learning rate n / exaggeration of Belkina et al. 2019).
const (
	exaggeration = 12.0
	earlySteps   = 125
	earlyMoment  = 0.5
	lateMoment   = 0.8
	leastGain    = 0.01
	leastRate    = 10.0
)

// TSNE embeds n rows of c channels in the plane by exact t-SNE, quadratic in n in time
// and memory: 8 bytes x 2 n^2. start gives the first places, such as those of PCA, of
// which only the shape matters. Equal arguments give equal results, whatever the number
// of threads.
func TSNE(x []float64, n, c int, start [][2]float64, o TSNEOptions) [][2]float64 {
	y := make([][2]float64, n)
	if n < 3 {
		copy(y, start)
		return y
	}
	if o.Perplexity == 0 {
		o.Perplexity = 30
	}
	o.Perplexity = max(1, min(o.Perplexity, float64(n-1)/3))
	if o.Steps == 0 {
		o.Steps = 500
	}
	t := &tsne{n: n, y: y, p: affinities(x, n, c, o.Perplexity), force: make([][2]float64, n),
		kernel: make([]float64, n*n), sums: make([]float64, n)}
	t.begin(start, o.Seed)
	t.descend(o.Steps)
	return y
}

// tsne is the state of the descent.
type tsne struct {
	n      int
	p      []float64    // (n, n) symmetric affinities, sum 1
	y      [][2]float64 // places
	force  [][2]float64 // gradient / 4
	kernel []float64    // (n, n) 1 / (1 + |yi-yj|^2), 0 on the diagonal
	sums   []float64    // of the rows of kernel
}

// begin scales start to a spread of 1e-4 and adds a jitter a hundred times smaller.
func (t *tsne) begin(start [][2]float64, seed uint64) {
	spread := 0.0
	for _, p := range start {
		spread += p[0]*p[0] + p[1]*p[1]
	}
	scale := 0.0
	if spread > 0 {
		scale = 1e-4 / math.Sqrt(spread/float64(t.n))
	}
	r := rand.New(rand.NewPCG(seed, 0x745e))
	for i := range t.y {
		for k := range 2 {
			v := r.NormFloat64() * 1e-6
			if i < len(start) {
				v += start[i][k] * scale
			}
			t.y[i][k] = v
		}
	}
}

func (t *tsne) descend(steps int) {
	rate := max(leastRate, float64(t.n)/exaggeration)
	speed := make([][2]float64, t.n)
	gain := make([][2]float64, t.n)
	for i := range gain {
		gain[i] = [2]float64{1, 1}
	}
	for step := range steps {
		boost, moment := 1.0, lateMoment
		if step < min(earlySteps, steps/2) {
			boost, moment = exaggeration, earlyMoment
		}
		t.gradient(boost)
		var mean [2]float64
		for i := range t.y {
			for k := range 2 {
				g := 4 * t.force[i][k]
				if g > 0 == (speed[i][k] > 0) {
					gain[i][k] = max(leastGain, gain[i][k]*0.8)
				} else {
					gain[i][k] += 0.2
				}
				speed[i][k] = moment*speed[i][k] - rate*gain[i][k]*g
				t.y[i][k] += speed[i][k]
				mean[k] += t.y[i][k] / float64(t.n)
			}
		}
		for i := range t.y {
			t.y[i][0] -= mean[0]
			t.y[i][1] -= mean[1]
		}
	}
}

// gradient fills force with sum_j (boost p_ij - q_ij) k_ij (y_i - y_j), a quarter of the
// gradient (equation 5), where q = k / sum k.
func (t *tsne) gradient(boost float64) {
	n := t.n
	rows(n, func(i int) {
		sum := 0.0
		a := t.y[i]
		row := t.kernel[i*n : i*n+n]
		for j, b := range t.y {
			dx, dy := a[0]-b[0], a[1]-b[1]
			k := 1 / (1 + dx*dx + dy*dy)
			row[j] = k
			sum += k
		}
		row[i] = 0
		t.sums[i] = sum - 1
	})
	z := 0.0
	for _, s := range t.sums {
		z += s
	}
	rows(n, func(i int) {
		a, fx, fy := t.y[i], 0.0, 0.0
		kernel, p := t.kernel[i*n:i*n+n], t.p[i*n:i*n+n]
		for j, b := range t.y {
			k := kernel[j]
			w := (boost*p[j] - k/z) * k
			fx += w * (a[0] - b[0])
			fy += w * (a[1] - b[1])
		}
		t.force[i] = [2]float64{fx, fy}
	})
}

// rows calls f for 0 to n-1 on several goroutines; calls must not touch each other's
// results.
func rows(n int, f func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w * n / workers; i < (w+1)*n/workers; i++ {
				f(i)
			}
		})
	}
	wg.Wait()
}

// affinities returns the symmetric joint probabilities (equation 1 and p_ij =
// (p_j|i + p_i|j) / 2n): the width of each point's Gaussian is such that the perplexity
// of its neighbours is the wanted one.
func affinities(x []float64, n, c int, perplexity float64) []float64 {
	p := make([]float64, n*n)
	rows(n, func(i int) {
		row := p[i*n : i*n+n]
		a := x[i*c : i*c+c]
		for j := range row {
			sum := 0.0
			for k, v := range x[j*c : j*c+c] {
				d := a[k] - v
				sum += d * d
			}
			row[j] = sum
		}
		neighbours(row, i, math.Log(perplexity))
	})
	for i := range n {
		for j := range i {
			v := (p[i*n+j] + p[j*n+i]) / float64(2*n)
			p[i*n+j], p[j*n+i] = v, v
		}
	}
	return p
}

// neighbours replaces squared distances to point self by probabilities whose entropy is
// the wanted one in nats, by bisection over the precision.
func neighbours(row []float64, self int, entropy float64) {
	least, largest := math.Inf(1), 0.0
	for j, d := range row {
		if j != self {
			least, largest = min(least, d), max(largest, d)
		}
	}
	dist := make([]float64, len(row))
	for j, d := range row {
		dist[j] = d - least
	}
	beta, lo, hi := 1.0, 0.0, math.Inf(1)
	if largest > least {
		beta = 1 / (largest - least)
	}
	for range 60 {
		sum, weighted := 0.0, 0.0
		for j, d := range dist {
			v := math.Exp(-d * beta)
			if j == self {
				v = 0
			}
			row[j] = v
			sum += v
			weighted += d * v
		}
		for j := range row {
			row[j] /= sum
		}
		h := math.Log(sum) + beta*weighted/sum
		switch {
		case math.Abs(h-entropy) < 1e-5:
			return
		case h > entropy: // too many neighbours
			if lo = beta; math.IsInf(hi, 1) {
				beta *= 2
				continue
			}
		default:
			hi = beta
		}
		beta = (lo + hi) / 2
	}
}
