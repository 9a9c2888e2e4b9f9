package kernel

import (
	"math"
	"slices"
)

// halfProduct is a backend that multiplies bfloat16: operands bfloat16, C and
// sums float32, otherwise as sgemm; bias (n) is added to each row unless nil.
type halfProduct interface {
	// bf16Supported reports whether it is worth calling; it may test the library.
	bf16Supported() bool
	bgemm(transA, transB bool, m, n, k int, alpha float32, a []uint16, lda int, b []uint16, ldb int, beta float32, c []float32, ldc int, bias []float32)
}

// path says which kernel multiplies.
type path int

const (
	pathFloat   path = iota // the backend's product of float32
	pathTiles               // the built-in product in bfloat16
	pathLibrary             // the library's product in bfloat16
)

// pathOf returns the path of p.
func (e *Engine) pathOf(p *Product) path {
	switch {
	case !p.BF16:
		return pathFloat
	case e.library != nil && (e.tiles == nil || p.M*p.N*p.K > smallProduct):
		return pathLibrary
	case e.tiles != nil:
		return pathTiles
	}
	return pathFloat
}

// mustConvert reports whether an operand of p has another type than the path
// takes: float32 for pathFloat (rounded to bfloat16 if p.BF16), bfloat16 for
// pathLibrary. The built-in product takes both.
func (w path) mustConvert(p *Product) bool {
	switch w {
	case pathTiles:
		return false
	case pathLibrary:
		return p.A.BF16 == nil || p.B.BF16 == nil
	}
	return p.BF16 || p.A.BF16 != nil || p.B.BF16 != nil
}

// setFloat chooses how products of float32 are computed.
func (e *Engine) setFloat() {
	switch e.info.Name {
	case backendBuiltin:
		e.float, _ = e.backend.(*tiledGemm)
		e.floatLimit = math.MaxInt
	case backendOneDNN:
		e.float, e.floatLimit = newTiled(), smallProduct
		// On Zen 4, the processors with AVX-512 BF16 but without AMX, oneDNN 2.6 did
		// the linear layers of a training step at 182 GFLOP/s and the built-in product at
		// 195, which adds the bias in the cache; their gradients were even.
		e.floatLayers = e.float != nil && hasBF16 && !hasAMX
	}
}

// setBF16 chooses how products in bfloat16 are computed. A library is for AMX, which
// the built-in product does not use. Without AMX, on a processor with AVX-512 BF16
// (GFLOP/s of one thread, built in and oneDNN 2.6.3): 208 and 223 for stored
// operands at 2048x1536x768, 198 and 202 with operands to convert, 191 and 192 for
// a weight gradient of 1536x384x3840, 108 and 80 for the scores of an attention head
// (65x65x64). The library's 0 to 7 % on large products do not make up for
// converted copies of the operands and a primitive to compile for each shape.
func (e *Engine) setBF16() {
	e.tiles = newTiledBF16()
	if e.info.Name == backendPlain {
		e.tiles = nil
	}
	if l, ok := e.backend.(halfProduct); ok && e.bf16 && hasAMX && l.bf16Supported() {
		e.library = l
	}
	if e.bf16 && e.tiles == nil && e.library == nil {
		e.warnings = append(slices.Clip(e.warnings), "precision bf16 brings no speed on this processor, which has no instructions for it: operands are rounded and multiplied as float32")
	}
}

// describeBF16 names what computes products in bfloat16.
func (e *Engine) describeBF16() string {
	switch {
	case e.library != nil:
		return "bf16 by " + e.info.Name
	case e.tiles != nil:
		return "bf16 built in (avx512_bf16)"
	}
	return "bf16 emulated"
}
