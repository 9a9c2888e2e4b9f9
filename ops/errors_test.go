package ops_test

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
)

// TestBuildErrors gives every op operands that do not fit.
func TestBuildErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 15))
	in := []optest.Input{
		optest.F32s(r, "m", 6, 4), optest.F32s(r, "other", 6, 5), optest.F32s(r, "v", 4), optest.F32s(r, "w", 3), optest.F32s(r, "s"),
		optest.I32s("i", make([]int32, 2), 2), optest.F32s(r, "image", 2, 3, 6, 4), optest.I32s("k", make([]int32, 4), 4),
	}
	_, ns := optest.Nodes(in)
	m, other, v, w, s, ids, image, k := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[7]
	for _, c := range []struct {
		want  string
		build func()
	}{
		{"want two arrays of one shape", func() { arith.Add(m, other) }},
		{"operand 1 is nil", func() { arith.Add(m, nil) }},
		{"want two arrays of one shape", func() { arith.AddScaled(m, other, s) }},
		{"want a scalar (got (4))", func() { arith.AddScaled(m, m, v) }},
		{"want x (R, D)", func() { nn.LayerNorm(v, v, v, 1) }},
		{"gamma must have shape (4)", func() { nn.LayerNorm(m, w, v, 1) }},
		{"beta must have shape (4)", func() { nn.LayerNorm(m, v, w, 1) }},
		{"eps must not be negative", func() { nn.LayerNorm(m, v, v, -1) }},
		{"key must have shape (2), or (3) with the number of the first row", func() { nn.DropoutBits(k, 0, 1, 1, 0.5) }},
		{"at least one row and column", func() { nn.DropoutBits(ids, 0, 0, 1, 0.5) }},
		{"keep must be in (0, 1] (got 0)", func() { nn.DropoutBits(ids, 0, 1, 1, 0) }},
		{"keep must be in (0, 1] (got 1.5)", func() { nn.DropoutBits(ids, 0, 1, 1, 1.5) }},
		{"bits must have shape (6)", func() { nn.Dropout(m, ids, 0.5) }},
		{"want x (R, D)", func() { nn.Dropout(v, ids, 0.5) }},
		{"keep must be in (0, 1] (got -1)", func() { nn.Dropout(m, nn.DropoutBits(ids, 0, 6, 4, 0.5), -1) }},
		{"want a matrix and an index vector", func() { nn.Embed(v, ids) }},
		{"rows must be a multiple of 4 (got 6)", func() { nn.GatherRows(m, ids, 4) }},
		{"a block has at least one row", func() { nn.GatherRows(m, ids, 0) }},
		{"rows must be a multiple of 4 (got 6)", func() { nn.AddPositions(m, m, 4) }},
		{"table must have at least 6 rows", func() { nn.AddPositions(m, layout.StridedRows(m, 0, 1, 3), 6) }},
		{"want x (B*l, D) and table (N, D)", func() { nn.AddPositions(m, other, 2) }},
		{"a sequence has at least one row", func() { nn.AddPositions(m, m, 0) }},
		{"want x (R, D)", func() { nn.L2Normalize(v, 1) }},
		{"eps must be positive", func() { nn.L2Normalize(m, 0) }},
		{"multiples of 3 (got 6, 4)", func() { nn.Patchify(image, 3) }},
		{"want images (B, C, H, W)", func() { nn.Patchify(m, 1) }},
		{"a patch has at least one pixel", func() { nn.Patchify(image, 0) }},
		{"token must have 4 columns", func() { nn.PrependToken(m, w, 2) }},
		{"rows must be a multiple of 4", func() { nn.PrependToken(m, v, 4) }},
		{"want token (D) or (K, D)", func() { nn.PrependToken(m, s, 2) }},
		{"a sequence has at least one row", func() { nn.PrependToken(m, v, 0) }},
		{"row 6 is the last one asked for, x has 6", func() { layout.StridedRows(m, 0, 2, 4) }},
		{"at least 0, 1 and 1 (got 0, 0, 1)", func() { layout.StridedRows(m, 0, 0, 1) }},
		{"want x (R, D)", func() { layout.StridedRows(v, 0, 1, 1) }},
		{"want a weight for each operand (got 1 weights, 2 operands)", func() { arith.WeightedSum([]float32{1}, s, s) }},
		{"want a weight for each operand (got 0 weights, 0 operands)", func() { arith.WeightedSum(nil) }},
		{"operand 1 must be a scalar", func() { arith.WeightedSum([]float32{1, 1}, s, v) }},
		{"groups of n = 3 columns", func() { arith.SumProducts(m, m, 3) }},
		{"groups of n = 0 columns", func() { arith.SumProducts(m, m, 0) }},
		{"want two matrices (R, K*n)", func() { arith.SumProducts(m, other, 1) }},
		{"want two matrices with as many rows", func() { arith.Outer(m, v) }},
		{"want two matrices with as many rows", func() { arith.Outer(m, layout.StridedRows(m, 0, 1, 3)) }},
		{"operand 0 is nil", func() { op.Detach(nil) }},
		{"want x (R, in) and w (out, in)", func() { nn.Linear(v, m, nil) }},
		{"x has 5 columns, w 4", func() { nn.Linear(other, m, nil) }},
		{"bias must have shape (6)", func() { nn.Linear(m, m, v) }},
		{"in the 6 rows of w (got 2 rows from 5)", func() { nn.LinearPart(m, m, nil, 5, 2) }},
		{"in the 6 rows of w (got 2 rows from -1)", func() { nn.LinearPart(m, m, nil, -1, 2) }},
		{"at least one row", func() { nn.LinearPart(m, m, nil, 0, 0) }},
		{"operand 0 is nil", func() { nn.GELU(nil) }},
		{"activation must be gelu, gelu_tanh, quick_gelu or silu", func() { nn.Activated(m, "relu") }},
		{"activation must be gelu, gelu_tanh, quick_gelu or silu", func() { nn.LinearActivated(m, m, nil, "relu") }},
		{"want x (R, 2H) (got (6, 5))", func() { nn.SwiGLU(other) }},
		{"want x (R, D)", func() { nn.ScaleColumns(v, v) }},
		{"scale must have shape (4)", func() { nn.ScaleColumns(m, w) }},
		{"want x (R, n), and scale and shift (D)", func() { nn.ScaleShift(v, v, v, 0) }},
		{"shift must have shape (4)", func() { nn.ScaleShift(m, v, w, 0) }},
		{"4 columns from 1 on are not in 4", func() { nn.ScaleShift(m, v, v, 1) }},
		{"want x (K, D) and at least one copy", func() { nn.RepeatRows(m, 0) }},
		{"rows must be a multiple of 4", func() { nn.MeanTokens(m, nil, 4, 0) }},
		{"want sequences with a row that is not skipped (got 3 rows, 3 skipped)", func() { nn.MeanTokens(m, nil, 3, 3) }},
		{"lengths must have shape (3)", func() { nn.MeanTokens(m, ids, 2, 0) }},
		{"operand 0 is nil", func() { arith.Sum(nil) }},
		{"operand 0 is nil", func() { arith.Mean(nil) }},
		{"want a scalar (got (4))", func() { arith.DivScalar(m, v) }},
		{"want a scalar (got (4))", func() { arith.MulScalar(m, v) }},
		{"operand 1 is nil", func() { arith.MulScalar(m, nil) }},
	} {
		optest.BuildError(t, c.want, c.want, c.build)
	}
}
