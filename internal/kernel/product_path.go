package kernel

import (
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/library"
)

// path says which kernel multiplies.
type path int

const (
	pathFloat   path = iota // the backend's product of float32
	pathTiles               // the built-in product in bfloat16
	pathLibrary             // the library's product in bfloat16
)

// pathOf returns the path of p.
func (e *Engine) pathOf(p *gemm.Product) path {
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
func (w path) mustConvert(p *gemm.Product) bool {
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
	case library.Builtin:
		e.float, _ = e.backend.(*gemm.Tiled)
		e.floatLimit = math.MaxInt
	case library.OneDNN:
		e.float, e.floatLimit = gemm.New(), smallProduct
		// On Zen 4, the processors with AVX-512 BF16 but without AMX, oneDNN 2.6 did
		// the linear layers of a training step at 182 GFLOP/s and the built-in product at
		// 195, which adds the bias in the cache; their gradients were even.
		e.floatLayers = e.float != nil && cpu.HasBF16 && !cpu.HasAMX
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
	e.tiles = gemm.NewBF16()
	if e.info.Name == library.Plain {
		e.tiles = nil
	}
	if l, ok := e.backend.(gemm.HalfBackend); ok && e.bf16 && cpu.HasAMX && l.SupportsBF16() {
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
