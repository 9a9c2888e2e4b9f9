package vector

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// LayerNorm sets dst = (x-mean)*rstd*gamma + beta with mean and variance over x
// (biased, as in PyTorch) and returns both statistics; the length is that of x.
// The statistics are accurate to a few units of the last place of the values whose
// spread they measure.
func LayerNorm(dst, x, gamma, beta []float32, eps float32) (mean, rstd float32) {
	if !cpu.HasVectors {
		return plainLayerNorm(dst, x, gamma, beta, eps)
	}
	n := len(x)
	if n == 0 {
		return 0, 0
	}
	mu, variance := moments(x)
	mean, rstd = float32(mu), float32(1/math.Sqrt(variance+float64(eps)))
	normaliseVec(at(dst, n), at(x, n), at(gamma, n), at(beta, n), n, mean, rstd)
	return mean, rstd
}

// Normalise makes the result of LayerNorm again, of statistics that are known. The length is that of x.
func Normalise(dst, x, gamma, beta []float32, mean, rstd float32) {
	if !cpu.HasVectors {
		plainNormalise(dst, x, gamma, beta, mean, rstd)
		return
	}
	n := len(x)
	normaliseVec(at(dst, n), at(x, n), at(gamma, n), at(beta, n), n, mean, rstd)
}

// momentsBlock is the number of values whose deviations are summed in float32.
const momentsBlock = 4096

// moments returns the mean of x and its variance.
//
// One pass sums deviations from a guess of the mean and their squares in float32. The
// guess is the mean of four values of x: all equal values have no deviation at all,
// whatever their size. If it turns out to be too far off, or if squares may have left
// the range of float32, two passes in float64 follow.
func moments(x []float32) (mean, variance float64) {
	n := len(x)
	guess := float32(0.25 * (float64(x[0]) + float64(x[n/4]) + float64(x[n/2]) + float64(x[3*n/4])))
	var s, q float64
	for rest := x; len(rest) > 0; rest = rest[min(len(rest), momentsBlock):] {
		ds, dq := momentsVec(unsafe.SliceData(rest), min(len(rest), momentsBlock), guess)
		s += float64(ds)
		q += float64(dq)
	}
	off := s / float64(n)
	// A product that is rounded before it is subtracted, also where the compiler would fuse the two.
	mean, variance = float64(guess)+off, q/float64(n)-float64(off*off)
	// The difference above loses a factor of five at most.
	if off*off <= 4*variance && variance > 1e-30 && q < math.MaxFloat32 {
		return mean, variance
	}
	mean = sumVec(unsafe.SliceData(x), n) / float64(n)
	return mean, sumSqDevVec(unsafe.SliceData(x), n, mean) / float64(n)
}

// LayerNormGrad sets dx and adds to dgamma and dbeta the gradients of LayerNorm,
// given its input x, its statistics and the gradient dy of its output.
// dx may be the same slice as dy. The length is that of x.
func LayerNormGrad(dx, dgamma, dbeta, x, gamma, dy []float32, mean, rstd float32) {
	if !cpu.HasVectors {
		plainLayerNormGrad(dx, dgamma, dbeta, x, gamma, dy, mean, rstd)
		return
	}
	n := len(x)
	px, pg, pdy := at(x, n), at(gamma, n), at(dy, n)
	a, b := layerNormSumsVec(at(dgamma, n), at(dbeta, n), px, pg, pdy, n, mean, rstd)
	layerNormGradVec(at(dx, n), px, pg, pdy, n, mean, rstd, a/float32(n), b/float32(n))
}

// LayerNormGradAdd is LayerNormGrad with more added to dx, which may be the same slice
// as dy or more.
func LayerNormGradAdd(dx, dgamma, dbeta, x, gamma, dy, more []float32, mean, rstd float32) {
	if !cpu.HasVectors {
		plainLayerNormGradAdd(dx, dgamma, dbeta, x, gamma, dy, more, mean, rstd)
		return
	}
	n := len(x)
	px, pg, pdy := at(x, n), at(gamma, n), at(dy, n)
	a, b := layerNormSumsVec(at(dgamma, n), at(dbeta, n), px, pg, pdy, n, mean, rstd)
	layerNormGradAddVec(at(dx, n), px, pg, pdy, at(more, n), n, mean, rstd, a/float32(n), b/float32(n))
}

// Dropout sets dst = scale * x where the bit of bits is one and 0 elsewhere, even
// if x is not finite there. Element i belongs to bit i%32 of word i/32.
func Dropout(dst, x []float32, bits []int32, scale float32) {
	if !cpu.HasVectors {
		plainDropout(dst, x, bits, scale)
		return
	}
	n := len(dst)
	dropoutVec(at(dst, n), at(x, n), bitsAt(bits, n), n, scale)
}

// DropoutAdd sets dst = x + Dropout(y).
func DropoutAdd(dst, x, y []float32, bits []int32, scale float32) {
	n := len(dst)
	px, py := at(x, n), at(y, n)
	if !cpu.HasVectors {
		plainDropoutAdd(dst, x, y, bits, scale)
		return
	}
	dropoutAddVec(at(dst, n), px, py, bitsAt(bits, n), n, scale)
}

// bitsAt returns the first word of bits, which must hold at least n.
func bitsAt(bits []int32, n int) *int32 {
	if 32*len(bits) < n {
		panic("kernel: vector: too few words of dropout bits")
	}
	return unsafe.SliceData(bits)
}

// AdamWStep holds the scalars of one AdamW update (Loshchilov and Hutter 2019,
// algorithm 2, with the decay scaled by the learning rate as in PyTorch).
type AdamWStep struct {
	LR, Beta1, Beta2, Eps, Decay float32
	// Correct1 and Correct2 are 1-beta1^t and 1-beta2^t.
	Correct1, Correct2 float32
	// GradScale multiplies the gradient first (clipping, accumulation).
	GradScale float32
}

// AdamW updates p and the moments m and v in place from the gradient g.
//
//	g = GradScale*g
//	p = p - LR*Decay*p
//	m = Beta1*m + (1-Beta1)*g
//	v = Beta2*v + (1-Beta2)*g*g
//	p = p - LR/Correct1 * m / (sqrt(v/Correct2) + Eps)
func AdamW(p, m, v, g []float32, s AdamWStep) {
	if !cpu.HasVectors {
		plainAdamW(p, m, v, g, s)
		return
	}
	n := len(p)
	scalars := s.scalars()
	adamwVec(at(p, n), at(m, n), at(v, n), at(g, n), n, &scalars[0])
}

// scalars returns what the assembly wants, in its order.
func (s *AdamWStep) scalars() [9]float32 {
	return [9]float32{s.GradScale, s.LR * s.Decay, s.Beta1, 1 - s.Beta1, s.Beta2, 1 - s.Beta2, 1 / s.Correct2, s.Eps,
		s.LR / s.Correct1}
}

// AdamWEMA is AdamW followed by EMA(twin, p, w) in one pass over memory, with the same
// bits.
func AdamWEMA(p, m, v, g, twin []float32, s AdamWStep, w float32) {
	n := len(p)
	pt := at(twin, n)
	if !cpu.HasVectors {
		plainAdamW(p, m, v, g, s)
		plainEMA(twin[:n], p, w)
		return
	}
	scalars := s.scalars()
	adamwEMAVec(at(p, n), at(m, n), at(v, n), at(g, n), pt, n, &scalars[0], w)
}
