package explain

import "math"

// Elementwise returns what each of N tokens of D channels, with values and gradients (N, D) of a
// score, adds to it to first order:
//
//	c_i = sum_d g_id a_id
//
// Above 0 a token speaks for the score, below against it. On the built-in scenes
// its maps are sharper than those of Channels, and dark where a score is near its largest value. It is Grad-CAM with
// the gradient of each position instead of the mean over all of them (HiResCAM, Draelos and Carin 2020, equation
// 3).
func Elementwise(values, grads []float32, n, d int) []float64 {
	c := make([]float64, n)
	for i := range c {
		for k := range d {
			c[i] += float64(grads[i*d+k]) * float64(values[i*d+k])
		}
	}
	return c
}

// Channels returns for N tokens of D channels, with values and gradients (N, D) of a score, the mean of
// what their channels add to it to first order, where that is above 0:
//
//	c_i = 1/D sum_d max(0, g_id a_id)
//
// It is Elementwise with the ReLU of Grad-CAM before the sum over channels instead of after it:
// channels that speak against the score do not cancel others. So it says how much a token matters,
// for and against.
func Channels(values, grads []float32, n, d int) []float64 {
	c := make([]float64, n)
	for i := range c {
		for k := range d {
			c[i] += max(float64(grads[i*d+k])*float64(values[i*d+k]), 0) / float64(d)
		}
	}
	return c
}

// Pooled returns the sum of Grad-CAM before its ReLU for N tokens of D channels (Selvaraju et al.
// 2017, equations 1 and 2):
//
//	alpha_d = 1/N sum_i g_id
//	c_i     = sum_d alpha_d a_id
func Pooled(values, grads []float32, n, d int) []float64 {
	alpha := make([]float64, d)
	for i := range n {
		for k := range d {
			alpha[k] += float64(grads[i*d+k]) / float64(n)
		}
	}
	c := make([]float64, n)
	for i := range c {
		for k := range d {
			c[i] += alpha[k] * float64(values[i*d+k])
		}
	}
	return c
}

// Positive is max(0, c) of each element: the ReLU of Grad-CAM.
func Positive(c []float64) []float64 {
	out := make([]float64, len(c))
	for i, v := range c {
		out[i] = max(v, 0)
	}
	return out
}

// Attention is the cross-attention of L places of a text to T tokens of an image: queries (L, D), keys
// and values (T, 2D) with rows [k | v], and the gradients (L, D) of a score to what the H heads gather.
type Attention struct {
	H, L, T, D               int
	Queries, KeyValues, Grad []float32
}

// Relevance returns for each place of the text and each token of the image (L, T)
//
//	r_lt = 1/H sum_h A_hlt max(0, dS/dA_hlt)
//
// as ALBEF's visualisations and its weakly supervised grounding do. A = softmax(q k^T / sqrt(D/H)), and
// since a head gathers o = A v, the gradient to A is dS/do v^T: the probabilities need no graph of
// their own.
func (a Attention) Relevance() []float64 {
	out := make([]float64, a.L*a.T)
	e := a.D / a.H
	p := make([]float64, a.T)
	for h := range a.H {
		for l := range a.L {
			q, g := a.Queries[l*a.D+h*e:][:e], a.Grad[l*a.D+h*e:][:e]
			most := math.Inf(-1)
			for t := range a.T {
				p[t] = dot(q, a.KeyValues[2*t*a.D+h*e:][:e]) / math.Sqrt(float64(e))
				most = max(most, p[t])
			}
			sum := 0.0
			for t := range p {
				p[t] = math.Exp(p[t] - most)
				sum += p[t]
			}
			for t := range p {
				grad := dot(g, a.KeyValues[(2*t+1)*a.D+h*e:][:e])
				out[l*a.T+t] += p[t] / sum * max(grad, 0) / float64(a.H)
			}
		}
	}
	return out
}

func dot(a, b []float32) (s float64) {
	for i, v := range a {
		s += float64(v) * float64(b[i])
	}
	return s
}
