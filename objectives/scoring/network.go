package scoring

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Network is what the metric mlp adds to the product of a pair, see encoders.PairNet:
//
//	f(x, y) = v^T relu( A (x o y) + B (x - y)^2 + b )
type Network struct {
	Product, Difference []float32 // A, B (H, C)
	Bias, Out           []float32 // b, v (H)
}

// check says what is wrong with a network over dim channels.
func (n *Network) check(dim int) error {
	if n == nil {
		return fmt.Errorf("scoring: metric mlp has no network")
	}
	h := len(n.Out)
	if h < 1 || len(n.Bias) != h || len(n.Product) != h*dim || len(n.Difference) != h*dim {
		return fmt.Errorf("scoring: metric mlp of %d channels has %d, %d, %d and %d weights: want %d, %d, %d and %d",
			dim, len(n.Product), len(n.Difference), len(n.Bias), h, h*dim, h*dim, h, h)
	}
	return nil
}

// add adds weight * f to rows of dst, stride apart, for n images (n, C) and m texts (m, C).
func (p *Network) add(e *compute.Engine, weight float32, images []float32, n int, texts []float32, m, c int,
	dst []float32, stride int) {
	h := len(p.Out)
	layer, scaled, squares := make([]float32, h*c), make([]float32, h*c), make([]float32, max(n, m)*c)
	vector.Axpy(layer, 1, p.Product)
	vector.Axpy(layer, -2, p.Difference)
	own := func(x []float32, rows int) []float32 { // (rows, H): B x^2
		vector.Mul(squares[:rows*c], x[:rows*c], x[:rows*c])
		out := make([]float32, rows*h)
		e.GemmSerial(false, true, rows, h, c, 1, squares, c, p.Difference, c, 0, out, h)
		return out
	}
	left, right, hidden := own(images, n), own(texts, m), make([]float32, m*h)
	for i := range n {
		for k := range h {
			vector.Mul(scaled[k*c:(k+1)*c], layer[k*c:(k+1)*c], images[i*c:(i+1)*c])
		}
		e.GemmSerial(false, true, m, h, c, 1, texts, c, scaled, c, 0, hidden, h)
		for j := range m {
			sum := float32(0)
			for k, v := range p.Out {
				sum += v * max(hidden[j*h+k]+left[i*h+k]+right[j*h+k]+p.Bias[k], 0)
			}
			dst[i*stride+j] += weight * sum
		}
	}
}
