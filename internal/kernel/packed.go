package kernel

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// PackWeights packs op(B) of p for products like p: the same B, K and N, any rows. Products that name it as
// their Packed give the same bits as those of the built-in product without it, and do not pack. The result is nil where
// packing would save nothing: operands are converted, or there is no assembly. It allocates N x K x 4 bytes, half of it
// in bfloat16. In the precision int8 it rounds them to 8 bits, and products that name the result are products in int8.
// Weights that change are packed anew. Must not be called inside For.
//
// What it saves grows as rows fall: see BenchmarkPacked.
func (e *Engine) PackWeights(p *gemm.Product) *gemm.Packed {
	t := e.packer(p)
	if t == nil || p.K == 0 || p.N == 0 {
		return nil
	}
	x, panel := t.NewPacked(p.K, p.N), t.Panel()
	e.For((x.N+panel-1)/panel, max(1, leastConverted/(panel*x.K)), func(_, lo, hi int) {
		t.Repack(x, p.B, p.TransB, lo*panel, min(hi*panel, x.N))
	})
	return x
}

// packer returns what multiplies p by packed weights, nil if nothing does.
func (e *Engine) packer(p *gemm.Product) gemm.Packer {
	switch {
	case e.converts(p):
	case e.int8 != nil && p.K <= gemm.MostInt8:
		return e.int8
	case p.BF16 && e.amx != nil:
		return e.amx
	case p.BF16:
		return e.tiles
	case e.float != nil:
		return e.float
	}
	return nil
}
