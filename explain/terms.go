package explain

// Tokens are N tokens of one side of a comparison, rows of C channels.
type Tokens struct {
	N, C int
	Rows []float32 // (N, C)
}

// row returns token i.
func (t Tokens) row(i int) []float32 { return t.Rows[i*t.C : (i+1)*t.C] }

// products returns x.y of all tokens: (N of x, N of y).
func products(x, y Tokens) []float64 {
	out := make([]float64, 0, x.N*y.N)
	for i := range x.N {
		for j := range y.N {
			out = append(out, dot(x.row(i), y.row(j)))
		}
	}
	return out
}

// Terms are what one direction of a comparison by tokens adds to the score of a pair. Each of Q
// queries, the tokens of one side, is compared with its context, the K tokens of the other side. The
// score is the sum over the directions of
//
//	sum_q w_q r_q + rest,  r_q = sum_k r_qk
//
// so that w_q r_qk is what the tokens q and k add to it together.
type Terms struct {
	ImageQueries bool // patches or regions are the queries and words their context; else the other way
	Q, K         int
	// Attends says what Matrix is: weights of the attention, which sum to 1 for each query, else
	// products of the tokens, of which that of Chosen alone counts.
	Attends bool
	Matrix  []float64 // (Q, K)
	Chosen  []int     // (Q) places in the context; nil with Attends
	Values  []float64 // (Q) r_q
	Weights []float64 // (Q) w_q
	Adds    []float64 // (Q, K) w_q r_qk
	Rest    float64   // what the pool adds whatever a query is
}

// Score is what the direction adds to the score.
func (t Terms) Score() float64 {
	sum := t.Rest
	for _, v := range t.Adds {
		sum += v
	}
	return sum
}

// Query returns what each query adds, (Q).
func (t Terms) Query() []float64 {
	out := make([]float64, t.Q)
	for i, v := range t.Adds {
		out[i/t.K] += v
	}
	return out
}

// Context returns what each token of the context adds, (K).
func (t Terms) Context() []float64 {
	out := make([]float64, t.K)
	for i, v := range t.Adds {
		out[i%t.K] += v
	}
	return out
}

// ByImage returns what each token of the image adds, ByText what each token of the text does.
func (t Terms) ByImage() []float64 {
	if t.ImageQueries {
		return t.Query()
	}
	return t.Context()
}

// ByText is described at ByImage.
func (t Terms) ByText() []float64 {
	if t.ImageQueries {
		return t.Context()
	}
	return t.Query()
}

// At returns where text token l and image token i lie in Matrix and Adds.
func (t Terms) At(l, i int) int {
	if t.ImageQueries {
		return i*t.K + l
	}
	return l*t.K + i
}
