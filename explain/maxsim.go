package explain

// MaxSim is one direction of a comparison with the nearest tokens (FILIP, Yao et al. 2021, equations 4
// and 5; TERAN, Messina et al. 2021, equation 5; WTI, Wang et al. 2022, equation 6) over one pair:
//
//	r_q = max_k s_qk
//
// of products s_qk of the image's tokens, under a metric where Rows are theirs, and the text's. The first
// of equal products is the maximum.
type MaxSim struct {
	ImageQueries bool
	Weights      []float64 // (Q) w_q
	Rows         []float32 // of the image's tokens in the products; nil: their own
}

// Of returns what the score of an image and a text is made of. Without a token on a side it is 0.
func (m MaxSim) Of(image, text Tokens) Terms {
	if m.Rows != nil {
		image.Rows = m.Rows
	}
	q, k := text, image
	if m.ImageQueries {
		q, k = image, text
	}
	t := Terms{ImageQueries: m.ImageQueries, Q: q.N, K: k.N, Matrix: products(q, k)}
	t.Adds, t.Values, t.Weights, t.Chosen = make([]float64, t.Q*t.K), make([]float64, t.Q), make([]float64, t.Q),
		make([]int, t.Q)
	if t.K == 0 {
		return t
	}
	copy(t.Weights, m.Weights)
	for i := range t.Q {
		row := t.Matrix[i*t.K:][:t.K]
		best := 0
		for j, v := range row {
			if v > row[best] {
				best = j
			}
		}
		t.Chosen[i], t.Values[i] = best, row[best]
		t.Adds[i*t.K+best] = t.Weights[i] * row[best]
	}
	return t
}

// Even returns n weights of w.
func Even(n int, w float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = w
	}
	return out
}

// Weighing is a network with one hidden layer of H units, softmax_t(w.relu(A x_t + b)), that gives
// tokens x_t their weights (WTI). The bias of the output changes none.
type Weighing struct {
	Hidden int
	A, B   []float32 // (H, C) and (H)
	W      []float32 // (H)
}

// Weights returns the weights of the tokens, (N).
func (g Weighing) Weights(x Tokens) []float64 {
	out := make([]float64, x.N)
	for i := range out {
		for h := range g.Hidden {
			v := dot(g.A[h*x.C:][:x.C], x.row(i)) + float64(g.B[h])
			out[i] += float64(g.W[h]) * max(v, 0)
		}
	}
	softmax(out)
	return out
}
