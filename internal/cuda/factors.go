package cuda

import (
	_ "embed"
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed product.cu
var productText string

// productSource has the kernels beside the products.
var productSource = Source{Name: "product", Text: productText}

// ProductType is the type of both operands of the products of a call.
func ProductType(c *exec.DeviceCall) exec.Type {
	if c.BF16 {
		return exec.BFloat16
	}
	return exec.Float32
}

// Part is what a step multiplies: values of an operand as a matrix.
type Part struct {
	In         int // the operand
	From       int // its first value
	Rows, Cols int
	LD         int       // values between the beginnings of rows, 0: Cols
	Type       exec.Type // that the product wants
	// Limit is the operand, not the first, that says how many columns exist: the others are taken as zero. 0: all.
	Limit int
}

// Matrix is values on the device as a product takes them: rows that begin LD values apart.
type Matrix struct {
	At   Pointer
	LD   int
	Type exec.Type
}

// From returns the matrix that begins n values after m.
func (m Matrix) From(n int) Matrix {
	m.At += Pointer(n * size(m.Type))
	return m
}

// MatrixOf returns an operand from a value on as it lies.
func MatrixOf(o exec.Operand, from, ld int) Matrix {
	return Matrix{At: o.Buffer.(*Buffer).at, LD: ld, Type: o.Type}.From(from)
}

// Factors are the parts of operands that a step multiplies.
type Factors struct {
	call  *exec.DeviceCall
	parts []factor
}

// factor is a part with where it lies if it must be of another type, or must lie otherwise.
type factor struct {
	Part
	copied  bool // or a shadow takes its place
	scratch Pointer
	ld      int // in scratch
	kernel  *Kernel
}

// rowAlign is what rows of bfloat16 values should begin at multiples of, in values: the fast products read 16 bytes at
// once.
const rowAlign = 8

// largePart is the number of values from which on it pays to copy a part so that its rows are aligned.
const largePart = 1 << 20

// NewFactors prepares parts of operands for the products of a step. Those that are not of the type that the product
// wants, and that have no shadow, are rounded into scratch memory, each into its own.
func NewFactors(c *exec.DeviceCall, parts ...Part) *Factors {
	f := &Factors{call: c}
	var bytes int64
	for _, p := range parts {
		if p.LD == 0 {
			p.LD = p.Cols
		}
		x := factor{Part: p, ld: (p.Cols + rowAlign - 1) / rowAlign * rowAlign}
		in := c.In[p.In]
		x.copied = in.Type != p.Type || p.Limit > 0 || p.Type == exec.BFloat16 && p.LD%rowAlign != 0 &&
			p.Rows*p.Cols >= largePart
		if x.copied {
			if in.Type == exec.Int32 || int64(p.Rows)*int64(x.ld/rowAlign) >= 1<<32 {
				Of(c).Note(fmt.Errorf("cuda: a product cannot read %d x %d values of an operand %v", p.Rows, p.Cols,
					in.Shape))
				return f
			}
			wide := 16 / size(in.Type)
			for p.LD%wide != 0 || p.From%wide != 0 {
				wide /= 2
			}
			x.kernel = Load(c, &productSource, "place_rows", Type("FROM", in), typed("TO", p.Type), Value("WIDE", wide))
			x.scratch = Pointer(bytes)
			bytes += (int64(p.Rows)*int64(x.ld)*int64(size(p.Type)) + 255) / 256 * 256
		}
		f.parts = append(f.parts, x)
	}
	if bytes == 0 {
		return f
	}
	at := Scratch(c, bytes)
	for i := range f.parts {
		f.parts[i].scratch += at
	}
	return f
}

// Place enqueues what brings the parts into the form that products want, and returns them. It is a part of a step.
func (f *Factors) Place() []Matrix {
	list := make([]Matrix, len(f.parts))
	for i := range f.parts {
		x := &f.parts[i]
		in := f.call.In[x.In]
		b := in.Buffer.(*Buffer)
		m := Matrix{At: b.at, LD: x.LD, Type: in.Type}.From(x.From)
		switch {
		case x.copied && b.shadow != 0 && in.Type == exec.Float32 && x.Type == exec.BFloat16 && x.Limit == 0:
			m = Matrix{At: b.shadow, LD: x.LD, Type: x.Type}.From(x.From)
		case x.copied:
			var limit any
			if x.Limit > 0 {
				limit = f.call.In[x.Limit]
			}
			g := Grid{X: Blocks(x.Rows*x.ld/rowAlign, 256), Threads: 256}
			x.kernel.Enqueue(g, x.scratch, m.At, limit, x.Rows, x.ld, x.Cols, int64(x.LD))
			m = Matrix{At: x.scratch, LD: x.ld, Type: x.Type}
		}
		list[i] = m
	}
	return list
}

// Multiply enqueues the product p of a step's call, of which sizes, transposition, factors and batch are given: to =
// op(a) op(b) + beta to + bias, bias a row or nil.
func Multiply(c *exec.DeviceCall, p Product, a, b, to Matrix, bias *Matrix) {
	p.A, p.B, p.C, p.LDA, p.LDB, p.LDC = a.Type, b.Type, to.Type, a.LD, b.LD, to.LD
	var row Pointer
	if bias != nil {
		p.Bias, p.BiasType, row = true, bias.Type, bias.At
	}
	if d := Of(c); d.failed == nil {
		d.failed = d.Multiply(p, a.At, b.At, to.At, row)
	}
}

// Beta is the factor of what the memory of a product's result holds before: 1 if the executor wants the product added
// to it.
func Beta(c *exec.DeviceCall) float32 {
	if c.Accumulate {
		return 1
	}
	return 0
}

// ZeroPart clears the values from one to another, exclusive, of an operand.
func ZeroPart(o exec.Operand, from, to int) {
	if from == to {
		return
	}
	b := o.Buffer.(*Buffer)
	n := size(o.Type)
	b.memory.device.clear(b.at+Pointer(from*n), int64(to-from)*int64(n))
}

// addBias adds a row to each row of the result of a product.
func (d *Device) addBias(p Product, c, bias Pointer) error {
	k := d.Kernel(&productSource, "add_bias", typed("Y", p.C), typed("BIAS", p.BiasType))
	for i := range max(p.Batch, 1) {
		at := c + Pointer(i*p.StrideC*size(p.C))
		if err := k.Launch(Grid{X: p.M, Y: Blocks(p.N, 256), Threads: 256}, at, bias, p.N, int64(p.LDC)); err != nil {
			return err
		}
	}
	return nil
}

// typed is Type for a type.
func typed(name string, t exec.Type) Macro { return Type(name, exec.Operand{Spec: exec.Spec{Type: t}}) }
