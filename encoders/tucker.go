package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// Tucker fuses features x of images and y of texts, rows of C channels, by a bilinear map whose tensor
// has the form of Tucker (Ben-Younes et al. 2017, "MUTAN"; ViPMM, equations 20 to 22, which leaves the factors of x and
// y out):
//
//	z_k = sum_ij T_kij x_i y_j             a full core T (C, C, C)
//	z   = sum_r (A_r x) * (B_r y)          a core of rank R, with A_r and B_r (C, C)
//	Q   = W_o z
//
// The parameters are core/weight (C, C*C), whose row k is T_k, or image/weight and text/weight (R*C, C), and
// out/weight (Dim, C). None has a bias, so that the map is bilinear.
type Tucker struct {
	Dim     int     // of Q
	Rank    int     // R; 0: the full core
	Tanh    bool    // of A_r x and B_r y, as in MUTAN's code
	Dropout float64 // of x and y
}

// Fuse returns Q (B, Dim) of features of images and texts (B, C).
func (t Tucker) Fuse(c *Context, s Scope, images, texts *gorgonia.Node) *gorgonia.Node {
	channels := pairColumns("tucker", images, texts)
	if t.Rank < 0 || t.Dim < 1 {
		misuse("tucker", images, "want a rank of at least 0 and an output of at least 1 (got %d and %d)", t.Rank, t.Dim)
	}
	c.given(images.Shape()[0], 1)
	x, y := c.dropout(images, t.Dropout), c.dropout(texts, t.Dropout) // (B, C)
	var z *gorgonia.Node
	if t.Rank == 0 {
		z = linearNoBias(s, "core", torchLinear, arith.Outer(x, y), channels) // (B, C)
	} else {
		of := func(name string, x *gorgonia.Node) *gorgonia.Node {
			x = linearNoBias(s, name, torchLinear, x, t.Rank*channels) // (B, R*C)
			if t.Tanh {
				x = nn.Tanh(x)
			}
			return x
		}
		z = arith.SumProducts(of("image", x), of("text", y), channels) // (B, C)
	}
	return linearNoBias(s, "out", torchLinear, z, t.Dim) // (B, Dim)
}

// pairColumns returns C of features of images and texts, which must both be (B, C).
func pairColumns(block string, images, texts *gorgonia.Node) int {
	c := columns(block, images)
	if !texts.Shape().Eq(images.Shape()) {
		misuse(block, images, "want as many texts as images, of as many channels (got texts %v)", texts.Shape())
	}
	return c
}
