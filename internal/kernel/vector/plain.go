package vector

import "math"

// The plain twins of the vector kernels: what runs where there is no assembly,
// and what the assembly is tested against.

func plainDot(x, y []float32) float32 {
	var s float64
	for i := range x {
		s += float64(x[i]) * float64(y[i])
	}
	return float32(s)
}

func plainSum(x []float32) float32 {
	var s float64
	for i := range x {
		s += float64(x[i])
	}
	return float32(s)
}

func plainSumSq(x []float32) float64 {
	var s float64
	for i := range x {
		s += float64(x[i]) * float64(x[i])
	}
	return s
}

func plainMax(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m || v != v {
			m = v
		}
	}
	return m
}

func plainAdd(dst, x, y []float32) {
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

func plainSub(dst, x, y []float32) {
	for i := range dst {
		dst[i] = x[i] - y[i]
	}
}

func plainMul(dst, x, y []float32) {
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

func plainMulSub(dst, x, y []float32, a float32) {
	for i := range dst {
		dst[i] = x[i] * (y[i] - a)
	}
}

func plainScale(dst []float32, a float32, x []float32) {
	for i := range dst {
		dst[i] = a * x[i]
	}
}

func plainAxpy(dst []float32, a float32, x []float32) {
	for i := range dst {
		dst[i] += a * x[i]
	}
}

func plainMulAdd(dst, x, y []float32) {
	for i := range dst {
		dst[i] += x[i] * y[i]
	}
}

func plainAxpby(dst []float32, a float32, x []float32, b float32, y []float32) {
	for i := range dst {
		dst[i] = a*x[i] + b*y[i]
	}
}

func plainFill(dst []float32, a float32) {
	for i := range dst {
		dst[i] = a
	}
}

// exp32 is exp of a float32, rounded once.
func exp32(x float32) float32 { return float32(math.Exp(float64(x))) }

func plainExp(dst, x []float32) {
	for i := range dst {
		dst[i] = exp32(x[i])
	}
}

func plainExpSum(dst, x []float32, shift float32) float32 {
	var s float64
	for i := range dst {
		dst[i] = exp32(x[i] - shift)
		s += float64(dst[i])
	}
	return float32(s)
}

func plainSumExp(x []float32, shift float32) float32 {
	var s float64
	for i := range x {
		s += float64(exp32(x[i] - shift))
	}
	return float32(s)
}

func plainSumExpDot(x, y []float32, shift float32) float32 {
	var s float64
	for i := range x {
		s += float64(exp32(x[i]-shift)) * float64(y[i])
	}
	return float32(s)
}

func plainSoftmaxDiff(dst, s []float32, lseS, scale float32) {
	for i := range dst {
		dst[i] = scale * exp32(s[i]-lseS)
	}
}

func plainSoftmaxDiff2(dst, s, t []float32, lseS, a, lseT, b float32) {
	for i := range dst {
		dst[i] = a*exp32(s[i]-lseS) - b*exp32(t[i]-lseT)
	}
}

// tailEnd is where the normal tail 1 - Phi vanishes in float32, with room to spare.
const tailEnd = 40

// plainTop returns the largest x - shift that is no NaN.
func plainTop(x []float32, shift float32) float32 {
	top := float32(math.Inf(-1))
	for _, v := range x {
		if d := v - shift; d > top {
			top = d
		}
	}
	return top
}

func plainGELU(dst, x []float32) {
	for i, v := range x[:len(dst)] {
		w := float64(v)
		a := math.Min(math.Abs(w), tailEnd)
		dst[i] = float32(math.Max(w, 0) - a*0.5*math.Erfc(a/math.Sqrt2))
	}
}

func plainBiasGELU(pre, out, bias []float32) {
	n := len(bias)
	for i := 0; i < len(pre); i += n {
		row := pre[i : i+n]
		plainAdd(row, row, bias)
		plainGELU(out[i:i+n], row)
	}
}

func plainGELUGrad(dst, x, dy []float32) {
	for i, v := range x[:len(dst)] {
		w := math.Max(-tailEnd, math.Min(float64(v), tailEnd))
		phi := math.Exp(-0.5*w*w) / math.Sqrt(2*math.Pi)
		dst[i] = dy[i] * float32(0.5*math.Erfc(-w/math.Sqrt2)+w*phi)
	}
}

func plainLayerNorm(dst, x, gamma, beta []float32, eps float32) (mean, rstd float32) {
	if len(x) == 0 {
		return 0, 0
	}
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
	plainNormalise(dst, x, gamma, beta, mean, rstd)
	return mean, rstd
}

func plainNormalise(dst, x, gamma, beta []float32, mean, rstd float32) {
	for i, v := range x {
		dst[i] = (v-mean)*rstd*gamma[i] + beta[i]
	}
}

// plainLayerNormSums is the first pass of the gradient: it adds to dgamma and dbeta and
// returns the means of dy*gamma and dy*gamma*xhat.
func plainLayerNormSums(dgamma, dbeta, x, gamma, dy []float32, mean, rstd float32) (a, b float32) {
	n := float64(len(x))
	var sumA, sumB float64
	for i, v := range x {
		h := (v - mean) * rstd
		g := dy[i] * gamma[i]
		sumA += float64(g)
		sumB += float64(g * h)
		dgamma[i] += dy[i] * h
		dbeta[i] += dy[i]
	}
	return float32(sumA / n), float32(sumB / n)
}

func plainLayerNormGrad(dx, dgamma, dbeta, x, gamma, dy []float32, mean, rstd float32) {
	a, b := plainLayerNormSums(dgamma, dbeta, x, gamma, dy, mean, rstd)
	for i, v := range x {
		h := (v - mean) * rstd
		dx[i] = rstd * (dy[i]*gamma[i] - a - h*b)
	}
}

func plainLayerNormGradAdd(dx, dgamma, dbeta, x, gamma, dy, more []float32, mean, rstd float32) {
	a, b := plainLayerNormSums(dgamma, dbeta, x, gamma, dy, mean, rstd)
	for i, v := range x {
		h := (v - mean) * rstd
		dx[i] = rstd*(dy[i]*gamma[i]-a-h*b) + more[i]
	}
}

func plainDropout(dst, x []float32, bits []int32, scale float32) {
	for i := range dst {
		if uint32(bits[i/32])>>(i%32)&1 != 0 {
			dst[i] = scale * x[i]
		} else {
			dst[i] = 0
		}
	}
}

func plainDropoutAdd(dst, x, y []float32, bits []int32, scale float32) {
	for i := range dst {
		var d float32
		if uint32(bits[i/32])>>(i%32)&1 != 0 {
			d = scale * y[i]
		}
		dst[i] = x[i] + d
	}
}

func plainEMA(dst, src []float32, w float32) {
	for i := range dst {
		dst[i] += w * (src[i] - dst[i])
	}
}

func plainAdamW(p, m, v, g []float32, s AdamWStep) {
	for i := range p {
		gi := s.GradScale * g[i]
		p[i] -= s.LR * s.Decay * p[i]
		m[i] = s.Beta1*m[i] + (1-s.Beta1)*gi
		v[i] = s.Beta2*v[i] + (1-s.Beta2)*gi*gi
		p[i] -= s.LR / s.Correct1 * m[i] / (float32(math.Sqrt(float64(v[i]/s.Correct2))) + s.Eps)
	}
}
