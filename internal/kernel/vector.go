package kernel

import "math"

// Vector kernels. All work on the calling thread; slices of one call have the
// same length (the length of the first) unless said otherwise. dst may be the
// same slice as an input, but must not overlap it partly.

// Dot returns sum x*y.
func Dot(x, y []float32) float32 {
	var s float32
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

// Sum returns sum x.
func Sum(x []float32) float32 {
	var s float32
	for i := range x {
		s += x[i]
	}
	return s
}

// SumSq returns sum x*x in float64.
func SumSq(x []float32) float64 {
	var s float64
	for i := range x {
		s += float64(x[i]) * float64(x[i])
	}
	return s
}

// Max returns the largest value of x, NaN if x holds one, -Inf if x is empty.
func Max(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m || v != v {
			m = v
		}
	}
	return m
}

// Add sets dst = x + y.
func Add(dst, x, y []float32) {
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// Mul sets dst = x * y.
func Mul(dst, x, y []float32) {
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

// Scale sets dst = a * x.
func Scale(dst []float32, a float32, x []float32) {
	for i := range dst {
		dst[i] = a * x[i]
	}
}

// Axpy sets dst += a * x.
func Axpy(dst []float32, a float32, x []float32) {
	for i := range dst {
		dst[i] += a * x[i]
	}
}

// Fill sets dst = a.
func Fill(dst []float32, a float32) {
	for i := range dst {
		dst[i] = a
	}
}

// Exp sets dst = exp(x).
func Exp(dst, x []float32) {
	for i := range dst {
		dst[i] = float32(math.Exp(float64(x[i])))
	}
}

// ExpSum sets dst = exp(x - shift) and returns the sum of dst.
func ExpSum(dst, x []float32, shift float32) float32 {
	var s float32
	for i := range dst {
		v := float32(math.Exp(float64(x[i] - shift)))
		dst[i] = v
		s += v
	}
	return s
}

// SumExp returns sum exp(x - shift).
func SumExp(x []float32, shift float32) float32 {
	var s float32
	for i := range x {
		s += float32(math.Exp(float64(x[i] - shift)))
	}
	return s
}

// SumExpDot returns sum exp(x - shift) * y.
func SumExpDot(x, y []float32, shift float32) float32 {
	var s float32
	for i := range x {
		s += float32(math.Exp(float64(x[i]-shift))) * y[i]
	}
	return s
}

// LogSumExp returns log sum exp(x), computed stably.
func LogSumExp(x []float32) float32 {
	m := Max(x)
	if math.IsInf(float64(m), 0) {
		return m
	}
	return m + float32(math.Log(float64(SumExp(x, m))))
}

// Softmax sets dst = softmax(x) and returns log sum exp(x).
func Softmax(dst, x []float32) float32 {
	m := Max(x)
	s := ExpSum(dst, x, m)
	Scale(dst, 1/s, dst)
	return m + float32(math.Log(float64(s)))
}

// GELU sets dst = x * Phi(x), the exact (erf) form.
func GELU(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
	}
}

// GELUGrad sets dst = dy * (Phi(x) + x*phi(x)), the derivative of GELU.
func GELUGrad(dst, x, dy []float32) {
	for i, v := range x {
		w := float64(v)
		phi := math.Exp(-0.5*w*w) / math.Sqrt(2*math.Pi)
		dst[i] = dy[i] * float32(0.5*(1+math.Erf(w/math.Sqrt2))+w*phi)
	}
}

// LayerNorm sets dst = (x-mean)*rstd*gamma + beta with mean and variance over x
// (biased, as in the reference) and returns both statistics.
func LayerNorm(dst, x, gamma, beta []float32, eps float32) (mean, rstd float32) {
	n := float64(len(x))
	var s, q float64
	for _, v := range x {
		s += float64(v)
	}
	mu := s / n
	for _, v := range x {
		d := float64(v) - mu
		q += d * d
	}
	mean, rstd = float32(mu), float32(1/math.Sqrt(q/n+float64(eps)))
	for i, v := range x {
		dst[i] = (v-mean)*rstd*gamma[i] + beta[i]
	}
	return mean, rstd
}

// LayerNormGrad sets dx and adds to dgamma and dbeta the gradients of LayerNorm,
// given its input x, its statistics and the gradient dy of its output.
// dx may be the same slice as dy.
func LayerNormGrad(dx, dgamma, dbeta, x, gamma, dy []float32, mean, rstd float32) {
	n := float32(len(x))
	var a, b float32 // sums of dy*gamma and dy*gamma*xhat
	for i, v := range x {
		h := (v - mean) * rstd
		g := dy[i] * gamma[i]
		a += g
		b += g * h
		dgamma[i] += dy[i] * h
		dbeta[i] += dy[i]
	}
	a, b = a/n, b/n
	for i, v := range x {
		h := (v - mean) * rstd
		dx[i] = rstd * (dy[i]*gamma[i] - a - h*b)
	}
}

// Dropout sets dst = scale * x where the bit of bits is one and 0 elsewhere.
// Element i belongs to bit i%32 of word i/32.
func Dropout(dst, x []float32, bits []int32, scale float32) {
	for i := range dst {
		if uint32(bits[i/32])>>(i%32)&1 != 0 {
			dst[i] = scale * x[i]
		} else {
			dst[i] = 0
		}
	}
}

// EMA sets dst += w * (src - dst).
func EMA(dst, src []float32, w float32) {
	for i := range dst {
		dst[i] += w * (src[i] - dst[i])
	}
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
	for i := range p {
		gi := s.GradScale * g[i]
		p[i] -= s.LR * s.Decay * p[i]
		m[i] = s.Beta1*m[i] + (1-s.Beta1)*gi
		v[i] = s.Beta2*v[i] + (1-s.Beta2)*gi*gi
		p[i] -= s.LR / s.Correct1 * m[i] / (float32(math.Sqrt(float64(v[i]/s.Correct2))) + s.Eps)
	}
}
