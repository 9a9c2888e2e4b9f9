package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/compute"
	"gonum.org/v1/gonum/optimize"
)

// ProbeOptions are the settings of a linear probe.
type ProbeOptions struct {
	Classes    int     // number of classes, at least 2
	Decay      float64 // weight of |W|^2/2 beside the mean cross-entropy
	Iterations int     // of L-BFGS at most; 0: 200
}

// Probe is a linear classifier over frozen features, each brought to mean 0 and variance
// 1 over the training part: multinomial logistic regression.
type Probe struct {
	classes, dim int
	mean, scale  []float32 // (D) of the features
	weight       []float32 // (K, D)
	bias         []float32 // (K)
	engine       *compute.Engine
}

// FitProbe fits a probe to n features x (n, D) with their classes, full-batch by L-BFGS
// (Liu and Nocedal 1989) from zero. It is a convex problem, so that there is nothing to
// tune and no seed. A feature that never varies takes no part. It ends early with the error
// of ctx. Features that are not finite are a *NonFiniteError.
func FitProbe(ctx context.Context, e *compute.Engine, x []float32, labels []int32, o ProbeOptions) (*Probe, error) {
	n := len(labels)
	switch {
	case o.Classes < 2:
		return nil, fmt.Errorf("eval: a probe needs at least 2 classes (got %d)", o.Classes)
	case !(o.Decay >= 0) || o.Iterations < 0:
		return nil, fmt.Errorf("eval: decay and iterations of a probe must be >= 0 (got %g and %d)", o.Decay,
			o.Iterations)
	}
	if err := checkRows("a probe", x, labels, o.Classes); err != nil {
		return nil, err
	}
	p := &Probe{classes: o.Classes, dim: len(x) / n, engine: e}
	p.standardize(x, n)
	fit := &probeFit{
		p: p, labels: labels, decay: o.Decay, x: p.prepared(x, n),
		weight: make([]float32, p.classes*p.dim), bias: make([]float32, p.classes),
		logits: make([]float32, n*p.classes), dw: make([]float32, p.classes*p.dim),
		at: make([]float64, p.classes*(p.dim+1)), grad: make([]float64, p.classes*(p.dim+1)),
	}
	fit.at[0] = math.NaN() // nothing is computed yet
	if o.Iterations == 0 {
		o.Iterations = 200
	}
	result, err := optimize.Minimize(optimize.Problem{
		Func: func(w []float64) float64 { fit.compute(w); return fit.loss },
		Grad: func(grad, w []float64) { fit.compute(w); copy(grad, fit.grad) },
		Status: func() (optimize.Status, error) {
			if err := ctx.Err(); err != nil {
				return optimize.Failure, err
			}
			return optimize.NotTerminated, nil
		},
	}, make([]float64, len(fit.at)), &optimize.Settings{
		MajorIterations: o.Iterations, GradientThreshold: 1e-5,
		Converger: &optimize.FunctionConverge{Absolute: 1e-7, Relative: 1e-6, Iterations: 10},
	}, &optimize.LBFGS{})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The loss is computed in float32: a line search that finds no more progress below
	// its rounding is at the end, not in error. It begins at log K, up to rounding too.
	if result == nil || math.IsNaN(result.F) || result.F > math.Log(float64(o.Classes))*(1+1e-6) {
		return nil, fmt.Errorf("eval: fitting the probe: %w", err)
	}
	fit.set(result.X)
	p.weight, p.bias = fit.weight, fit.bias
	return p, nil
}

// checkRows tests that x holds finite features of equal width for labels in range.
func checkRows(what string, x []float32, labels []int32, classes int) error {
	n := len(labels)
	if n == 0 || len(x) == 0 || len(x)%n != 0 {
		return fmt.Errorf("eval: %s needs features of equal width for every label (got %d values for %d labels)", what,
			len(x), n)
	}
	for i, l := range labels {
		if l < 0 || int(l) >= classes {
			return fmt.Errorf("eval: label %d of %s must be in [0, %d) (got %d)", i, what, classes, l)
		}
	}
	return checkFinite(what, x, len(x)/n)
}

// checkFinite tests that the features x (n, D) are finite.
func checkFinite(what string, x []float32, d int) error {
	for i, v := range x {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return &NonFiniteError{fmt.Sprintf("eval: feature %d of row %d of %s is %v", i%d, i/d, what, v),
				"the model has diverged, evaluate another checkpoint"}
		}
	}
	return nil
}

// standardize finds mean and scale of each feature.
func (p *Probe) standardize(x []float32, n int) {
	d := p.dim
	p.mean, p.scale = make([]float32, d), make([]float32, d)
	sum, squares := make([]float64, d), make([]float64, d)
	for i := range n {
		for j, v := range x[i*d:][:d] {
			sum[j] += float64(v)
		}
	}
	for j := range sum {
		p.mean[j] = float32(sum[j] / float64(n))
	}
	for i := range n {
		for j, v := range x[i*d:][:d] {
			t := float64(v) - float64(p.mean[j])
			squares[j] += t * t
		}
	}
	for j, s := range squares {
		// A feature varies beyond the rounding of its mean, whatever its size; below 1e-30 its inverse is beyond
		// float32.
		if deviation := math.Sqrt(s / float64(n)); deviation > max(1e-30, 1e-6*math.Abs(float64(p.mean[j]))) {
			p.scale[j] = float32(1 / deviation)
		}
	}
}

// prepared returns n standardised features.
func (p *Probe) prepared(x []float32, n int) []float32 {
	out := make([]float32, len(x))
	for i := range n {
		for j, v := range x[i*p.dim:][:p.dim] {
			out[i*p.dim+j] = (v - p.mean[j]) * p.scale[j]
		}
	}
	return out
}

// Predict returns the likeliest class of each of n features x (n, D), the lowest of
// equally likely ones. A NaN among their scores is a *NonFiniteError.
func (p *Probe) Predict(x []float32, n int) ([]int32, error) {
	if n < 1 || len(x) != n*p.dim {
		return nil, fmt.Errorf("eval: the probe takes features of width %d (got %d values for %d rows)", p.dim, len(x),
			n)
	}
	logits := make([]float32, n*p.classes)
	p.logits(p.prepared(x, n), p.weight, p.bias, n, logits)
	out := make([]int32, n)
	for i := range out {
		k, err := Likeliest(logits[i*p.classes:][:p.classes])
		if err != nil {
			return nil, fmt.Errorf("eval: row %d of the probe: %w", i, err)
		}
		out[i] = int32(k)
	}
	return out, nil
}

// logits sets dst (n, K) = x w^T + b.
func (p *Probe) logits(x, w, b []float32, n int, dst []float32) {
	for i := range n {
		copy(dst[i*p.classes:], b)
	}
	p.engine.Gemm(false, true, n, p.classes, p.dim, 1, x, p.dim, w, p.dim, 1, dst, p.classes)
}

// probeFit is the objective of FitProbe. Its variables are W row by row, then the biases.
type probeFit struct {
	p            *Probe
	x            []float32 // (n, D) standardised
	labels       []int32
	decay        float64
	weight, bias []float32
	logits, dw   []float32
	at, grad     []float64 // where loss and gradient were computed last
	loss         float64
}

// set takes over variables.
func (f *probeFit) set(w []float64) {
	for i := range f.weight {
		f.weight[i] = float32(w[i])
	}
	for i := range f.bias {
		f.bias[i] = float32(w[len(f.weight)+i])
	}
}

// compute sets loss and gradient, once for a point that is asked for twice.
func (f *probeFit) compute(w []float64) {
	if slices.Equal(w, f.at) {
		return
	}
	copy(f.at, w)
	f.set(w)
	n, k, d := len(f.labels), f.p.classes, f.p.dim
	f.p.logits(f.x, f.weight, f.bias, n, f.logits)
	f.loss = 0
	biases := f.grad[k*d:]
	clear(biases)
	for i, label := range f.labels { // logits become softmax minus target, over n
		row := f.logits[i*k:][:k]
		top := slices.Max(row)
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v - top))
		}
		f.loss += (math.Log(sum) - float64(row[label]-top)) / float64(n)
		for j, v := range row {
			g := math.Exp(float64(v-top)) / sum
			if j == int(label) {
				g--
			}
			row[j] = float32(g / float64(n))
			biases[j] += g / float64(n)
		}
	}
	f.p.engine.Gemm(true, false, k, d, n, 1, f.logits, k, f.x, d, 0, f.dw, d)
	for i, g := range f.dw {
		f.loss += f.decay / 2 * w[i] * w[i]
		f.grad[i] = float64(g) + f.decay*w[i]
	}
}
