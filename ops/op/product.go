package op

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// Product returns a product in the precision of the call's engine. Ops make it when
// they are prepared and fill in the operands in every step.
func Product(c *exec.Call, transA, transB bool) *gemm.Product {
	return &gemm.Product{TransA: transA, TransB: transB, Alpha: 1, BF16: c.Engine.BF16()}
}

// Matrix returns operand i of a call as a matrix with rows of ld values that begins
// at value from: in bfloat16 where it is stored so, or has a copy so and the engine
// multiplies in bfloat16.
func Matrix(c *exec.Call, i, from, ld int) gemm.Matrix {
	if b := c.In[i].BF16; b != nil && c.Engine.BF16() {
		return gemm.Matrix{BF16: b[from:], LD: ld}
	}
	return gemm.Matrix{F32: c.In[i].F32[from:], LD: ld}
}

// Beta is the factor of what a product's memory holds before: 1 if the executor wants
// the product added to it.
func Beta(c *exec.Call) float32 {
	if c.Accumulate {
		return 1
	}
	return 0
}
