package scoring

import "fmt"

// Metric is the learned metric of GSSF, W o U of x^T (W o U) y: U keeps what Form names,
// and Weight is what is kept.
type Metric struct {
	Form   string    // cosine: W is the identity | diag | block_diag | dense | mlp
	Blocks int       // N of block_diag
	Weight []float32 // diag (C), block_diag (N, d, d), dense (C, C); nil with cosine and mlp
	Net    *Network  // of mlp, what is added to the product
}

// shape returns the number of blocks of a metric over dim channels and their size, 0 for
// the cosine and mlp.
func (m Metric) shape(dim int) (blocks, size int) {
	switch m.Form {
	case "diag":
		return dim, 1
	case "block_diag":
		if m.Blocks > 0 {
			return m.Blocks, dim / m.Blocks
		}
	case "dense":
		return 1, dim
	}
	return 0, 0
}

// Check says what is wrong with the metric of features with dim channels.
func (m Metric) Check(dim int) error {
	n, d := m.shape(dim)
	switch {
	case m.Form == "cosine":
		return nil
	case m.Form == "mlp":
		return m.Net.check(dim)
	case m.Form == "block_diag" && (n < 1 || n*d != dim):
		return fmt.Errorf("scoring: %d blocks do not divide %d channels: choose a divisor", m.Blocks, dim)
	case n == 0:
		return fmt.Errorf("scoring: no metric %q: the forms are cosine, diag, block_diag, dense and mlp", m.Form)
	case len(m.Weight) != n*d*d:
		return fmt.Errorf("scoring: metric %s of %d channels has %d weights: want %d", m.Form, dim, len(m.Weight),
			n*d*d)
	}
	return nil
}

// add adds weight * W^T x to y, both (C).
func (m *Metric) add(y []float32, weight float32, x []float32) {
	if m == nil || m.Form == "cosine" || m.Form == "mlp" {
		for i, v := range x {
			y[i] += weight * v
		}
		return
	}
	n, d := m.shape(len(x))
	for b := range n {
		x, y, w := x[b*d:(b+1)*d], y[b*d:(b+1)*d], m.Weight[b*d*d:(b+1)*d*d]
		for i, v := range x {
			v *= weight
			for j, u := range w[i*d : (i+1)*d] {
				y[j] += v * u
			}
		}
	}
}
