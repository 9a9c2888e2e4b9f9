package explain

import "math"

// Cross is one direction of stacked cross attention (SCAN, Lee et al. 2018, equations 1 to 9; BFAN, Liu
// et al. 2019) over one pair. With the tokens q of the queries and k of the context, and products s_qk
//
//	b_qk = LeakyReLU(s_qk),  slope 0.1
//	p_qk = softmax_k(Scale b_qk / (|b_.k| + 1e-8)), with Focal those above their mean alone, scaled to the sum 1;
//	       with Prob the mean is weighted by their square roots
//	c_q  = sum_k p_qk k
//	r_qk = p_qk q.k / (|q| |c_q|),  r_q = sum_k r_qk
//
// The score is the mean of r_q, w_q = 1/Q, or with Pool = l > 0
//
//	log(sum_q exp(l r_q)) / l = sum_q w_q r_q + H(w) / l,  w_q = exp(l r_q) / sum_q' exp(l r_q')
//
// with the entropy H, which is the rest. A direction that is a Share of the score has w_q and the rest
// times it.
type Cross struct {
	ImageQueries bool
	Scale, Pool  float64
	Focal, Prob  bool
	Share        float64
	// Attention and Similarity are the rows of the image's tokens as s_qk and q.k compare them, under a
	// metric each; nil: as they are.
	Attention, Similarity []float32
}

// Of returns what the score of an image and a text is made of. Without a token on a side it is 0.
func (c Cross) Of(image, text Tokens) Terms {
	q, k := text, image
	if c.ImageQueries {
		q, k = image, text
	}
	t := Terms{ImageQueries: c.ImageQueries, Q: q.N, K: k.N, Attends: true}
	t.Matrix, t.Adds = make([]float64, t.Q*t.K), make([]float64, t.Q*t.K)
	t.Values, t.Weights = make([]float64, t.Q), make([]float64, t.Q)
	if t.Q == 0 || t.K == 0 {
		return t
	}
	c.attend(t, c.products(image, c.Attention, text))
	similarity := c.products(image, c.Similarity, text)
	for i := range t.Q {
		p := t.Matrix[i*t.K:][:t.K]
		context := make([]float64, k.C)
		for j, weight := range p {
			for d, v := range k.row(j) {
				context[d] += weight * float64(v)
			}
		}
		length := 0.0
		for _, v := range context {
			length += v * v
		}
		length = max(math.Sqrt(dot(q.row(i), q.row(i))*length), crossEps)
		for j, weight := range p {
			r := weight * similarity[i*t.K+j] / length
			t.Adds[i*t.K+j] = r
			t.Values[i] += r
		}
	}
	t.Rest = c.Share * c.pool(t)
	for i := range t.Q {
		t.Weights[i] *= c.Share
		for j := range t.K {
			t.Adds[i*t.K+j] *= t.Weights[i]
		}
	}
	return t
}

const (
	crossSlope = 0.1  // of LeakyReLU
	crossEps   = 1e-8 // added to the norms over the queries, and the least product of two lengths
	crossEqual = 1e-5 // weights that differ by this part of them are equal
)

// products are those of queries and context, (Q, K), with other rows of the image; nil: its own.
func (c Cross) products(image Tokens, rows []float32, text Tokens) []float64 {
	if rows != nil {
		image.Rows = rows
	}
	if c.ImageQueries {
		return products(image, text)
	}
	return products(text, image)
}

// attend sets the weights p from the products s.
func (c Cross) attend(t Terms, s []float64) {
	norms := make([]float64, t.K)
	for i, v := range s {
		s[i] = max(v, crossSlope*v)
		norms[i%t.K] += s[i] * s[i]
	}
	for i := range t.Q {
		p := t.Matrix[i*t.K:][:t.K]
		for j := range p {
			p[j] = c.Scale * s[i*t.K+j] / (math.Sqrt(norms[j]) + crossEps)
		}
		softmax(p)
		if c.Focal {
			focus(p, c.Prob)
		}
	}
}

// focus leaves out weights that are not above their mean, or their mean weighted by their square roots; where all are
// equal they stay.
func focus(p []float64, weighted bool) {
	mean, most, kept := 0.0, 0.0, 0.0
	for _, v := range p {
		mean, most = mean+v/float64(len(p)), max(most, v)
	}
	if most <= mean*(1+crossEqual) {
		return
	}
	if weighted {
		sum, roots := 0.0, 0.0
		for _, v := range p {
			sum, roots = sum+v*math.Sqrt(v), roots+math.Sqrt(v)
		}
		mean = sum / roots
	}
	for j, v := range p {
		if v <= mean {
			p[j] = 0
		}
		kept += p[j]
	}
	for j := range p {
		p[j] /= kept
	}
}

// pool sets the weights w of the values r, and returns the rest.
func (c Cross) pool(t Terms) (rest float64) {
	for i, r := range t.Values {
		t.Weights[i] = c.Pool * r // all equal for the mean
	}
	softmax(t.Weights)
	if c.Pool == 0 {
		return 0
	}
	for _, w := range t.Weights {
		if w > 0 {
			rest -= w * math.Log(w) / c.Pool
		}
	}
	return rest
}

// softmax sets x to softmax(x).
func softmax(x []float64) {
	most, sum := math.Inf(-1), 0.0
	for _, v := range x {
		most = max(most, v)
	}
	for i, v := range x {
		x[i] = math.Exp(v - most)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}
