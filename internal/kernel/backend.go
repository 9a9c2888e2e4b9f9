package kernel

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// Names of the backends, as Options.Backend takes them.
const (
	Auto    = "auto"    // Builtin, or Accelerate on macOS on arm64
	Builtin = "builtin" // assembly, Go where there is none for the processor
	Plain   = "plain"   // Go
)

// backend is what multiplies float32 where there are no tiles for it.
type backend struct {
	name, version, file string
	gemm.Backend
}

// newBackend returns the backend of a name and what to warn of.
func newBackend(name string) (b backend, warning string, err error) {
	switch name {
	case "", Auto:
		if b.Backend, warning = systemBLAS(); b.Backend != nil {
			b.name = "blas"
			break
		}
		fallthrough
	case Builtin:
		b.name, b.Backend = Builtin, gemm.Builtin()
	case Plain:
		b.name, b.Backend = Plain, gemm.Plain{}
	default:
		return b, "", fmt.Errorf("kernel: unknown backend %q: choose auto, builtin or plain", name)
	}
	b.version, b.file = b.Info()
	return b, warning, nil
}

// converts reports whether an operand of p has another type than what multiplies it takes: tiles and AMX take all,
// others float32.
func (e *Engine) converts(p *gemm.Product) bool {
	return (!p.BF16 || e.tiles == nil) && (p.BF16 || p.A.BF16 != nil || p.B.BF16 != nil)
}

// compute computes p, whose operands have the types that it takes, on the calling thread.
func (e *Engine) compute(p *gemm.Product) {
	switch {
	case p.Packed.Int8():
		e.int8.Multiply(p)
	case p.BF16 && e.amx != nil:
		e.amx.Multiply(p)
	case p.BF16 && e.tiles != nil:
		e.tiles.Multiply(p)
	case e.float != nil:
		e.float.Multiply(p)
	default:
		e.backend.SGEMM(p.TransA, p.TransB, p.M, p.N, p.K, p.Alpha, p.A.F32, p.A.LD, p.B.F32, p.B.LD, p.Beta, p.C, p.LDC)
		p.Finish()
	}
}

// setBF16 chooses how products in bfloat16 are computed: by AMX, by AVX-512 BF16 or BFDOT, or as products of rounded float32.
func (e *Engine) setBF16() {
	if e.backend.name != Plain {
		e.tiles, e.amx = gemm.NewBF16(), gemm.NewAMX()
	}
	if e.bf16 && e.tiles == nil {
		e.warnings = append(slices.Clip(e.warnings),
			"precision bf16 brings no speed on this processor, which has no instructions for it: operands are rounded and multiplied as float32")
	}
}

// setInt8 chooses how products in int8 are computed.
func (e *Engine) setInt8() {
	if e.int8 = gemm.NewInt8(); e.backend.name == Plain {
		e.int8 = gemm.PlainInt8()
	}
	if e.int8.Info() == "" {
		e.warnings = append(slices.Clip(e.warnings), "precision int8 is slow on this processor: its products are in Go here")
	}
}

// describeInt8 names what computes products in int8.
func (e *Engine) describeInt8() string {
	if level := e.int8.Info(); level != "" {
		return "int8 built in (" + level + ")"
	}
	return "int8 in Go"
}

// describeBF16 names what computes products in bfloat16.
func (e *Engine) describeBF16() string {
	switch {
	case e.amx != nil:
		return "bf16 built in (amx_bf16)"
	case e.tiles != nil:
		level, _ := e.tiles.Info()
		return "bf16 built in (" + level + ")"
	}
	return "bf16 emulated"
}
