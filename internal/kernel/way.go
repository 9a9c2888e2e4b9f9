package kernel

import (
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/library"
)

// path says which types of operands a kernel takes.
type path int

const (
	pathFloat   path = iota // float32; products in bfloat16 are of rounded operands
	pathTiles               // float32 and bfloat16, as the built-in product in bfloat16 does
	pathLibrary             // bfloat16, as a library's product in bfloat16 does
)

// mustConvert reports whether an operand of p has another type than the path
// takes.
func (w path) mustConvert(p *gemm.Product) bool {
	switch w {
	case pathTiles:
		return false
	case pathLibrary:
		return p.A.BF16 == nil || p.B.BF16 == nil
	}
	return p.BF16 || p.A.BF16 != nil || p.B.BF16 != nil
}

// way is one implementation of a product, with all that follows it: the built-in product of tiles, a library's
// in bfloat16 or of float32, or what fixed rules take. One of the last five fields is set. (They are no interface
// and no function, by which products would escape to the heap.)
type way struct {
	name    string // as choices of the best kernel name it
	path    path
	foreign bool // a library's, which may be wrong or end the process

	tiles   *gemm.Tiled
	amx     *gemm.AMX
	half    gemm.HalfBackend
	backend gemm.Backend
	rules   *Engine
}

// setWays makes the ways of the fixed rules.
func (e *Engine) setWays() {
	e.byRule = &way{path: pathFloat, rules: e}
	e.byTiles = &way{name: library.Builtin, path: pathTiles, rules: e}
	e.byAMX = &way{name: library.Builtin, path: pathTiles, amx: e.amx}
	e.byLibrary = &way{name: e.info.Name, path: pathLibrary, rules: e}
}

// multiply computes p, whose operands have the types of the path, on the calling thread.
func (w *way) multiply(p *gemm.Product) {
	switch {
	case w.tiles != nil:
		w.tiles.Multiply(p)
	case w.amx != nil:
		w.amx.Multiply(p)
	case w.half != nil:
		multiplyHalf(w.half, p)
	case w.backend != nil:
		multiplyFloat(w.backend, p)
	case w.path == pathTiles:
		w.rules.tiles.Multiply(p)
	case w.path == pathLibrary:
		multiplyHalf(w.rules.library, p)
	case w.rules.builtIn(p):
		w.rules.float.Multiply(p)
	default:
		multiplyFloat(w.rules.backend, p)
	}
}

// multiplyHalf computes p by a library's product in bfloat16, which adds the bias.
func multiplyHalf(l gemm.HalfBackend, p *gemm.Product) {
	l.BGEMM(p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.A.BF16, p.A.LD, p.B.BF16, p.B.LD, p.Beta, p.C, p.LDC, p.Bias)
	if p.Follows() {
		q := *p
		q.Bias = nil
		q.Finish()
	}
}

// multiplyFloat computes p by a backend's product of float32.
func multiplyFloat(b gemm.Backend, p *gemm.Product) {
	b.SGEMM(p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.A.F32, p.A.LD, p.B.F32, p.B.LD, p.Beta, p.C, p.LDC)
	p.Finish()
}

// fixed returns the way of p by fixed rules, which know nothing of its shape but the size.
func (e *Engine) fixed(p *gemm.Product) *way {
	switch {
	case !p.BF16:
		return e.byRule
	case e.library != nil && (e.tiles == nil || p.M*p.N*p.K > smallProduct):
		return e.byLibrary
	case e.amx != nil:
		return e.byAMX
	case e.tiles != nil:
		return e.byTiles
	}
	return e.byRule
}

// builtIn says whether the fixed rules take the built-in product of float32.
func (e *Engine) builtIn(p *gemm.Product) bool {
	return e.float != nil && (p.Packed != nil || p.M*p.N*p.K <= e.floatLimit)
}

// setFloat chooses how products of float32 are computed. asked is the backend that was asked for.
func (e *Engine) setFloat(asked string) {
	// Processors with AVX-512 BF16 are Zen 4 and Zen 5, and Intel's with AMX, where all are within 5 % and the built-in
	// product does what follows in the cache. On Zen 4 oneDNN 2.6 did the linear layers of a training step at 182
	// GFLOP/s and the built-in product at 195, which adds the bias in the cache, and their gradients were even. On Zen
	// 5 it does the gradients at 390 to 410 GFLOP/s and the built-in product at 425 to 460, and OpenBLAS and MKL keep
	// to vectors of 256 bits.
	best := cpu.HasBF16
	switch auto := asked == "" || asked == library.Auto; {
	case e.info.Name == library.Builtin:
		e.float, _ = e.backend.(*gemm.Tiled)
		e.floatLimit = math.MaxInt
	case auto && best && e.info.Name != library.Plain:
		e.float, e.floatLimit = gemm.New(), math.MaxInt
	case e.info.Name == library.OneDNN: // asked for by name, or on another processor
		e.float, e.floatLimit = gemm.New(), smallProduct
	}
}

// describeFloat says what computes products of float32 where that is not the backend; empty: the backend does.
func (e *Engine) describeFloat() string {
	if e.float != nil && e.floatLimit == math.MaxInt && e.info.Name != library.Builtin {
		return ", fp32 built in"
	}
	return ""
}

// setBF16 chooses how products in bfloat16 are computed. asked is the backend that was asked for. The built-in products
// come first. By AMX that of the built-in is faster than oneDNN's (docs/benchmarks.md), which is taken where it is
// asked for. Without AMX, on a processor with AVX-512 BF16 (GFLOP/s of one thread, built in and oneDNN 2.6.3): 208 and
// 223 for stored operands at 2048x1536x768, 198 and 202 with operands to convert, 191 and 192 for a weight gradient of
// 1536x384x3840, 108 and 80 for the scores of an attention head (65x65x64). The library's 0 to 7 % on large products do
// not make up for converted copies of the operands and a primitive to compile for each shape.
func (e *Engine) setBF16(asked string) {
	e.tiles, e.amx = gemm.NewBF16(), gemm.NewAMX()
	if e.info.Name == library.Plain {
		e.tiles, e.amx = nil, nil
	}
	if l, ok := e.backend.(gemm.HalfBackend); ok && e.bf16 && cpu.HasAMX && asked == e.info.Name && l.SupportsBF16() {
		e.library = l
	}
	if e.bf16 && e.tiles == nil && e.library == nil {
		e.warnings = append(slices.Clip(e.warnings),
			"precision bf16 brings no speed on this processor, which has no instructions for it: operands are rounded and multiplied as float32")
	}
}

// describeBF16 names what computes products in bfloat16.
func (e *Engine) describeBF16() string {
	switch {
	case e.library != nil:
		return "bf16 by " + e.info.Name
	case e.amx != nil:
		return "bf16 built in (amx_bf16)"
	case e.tiles != nil:
		return "bf16 built in (avx512_bf16)"
	}
	return "bf16 emulated"
}
