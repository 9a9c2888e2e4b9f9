package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var poolSource = cuda.NewSource(files, "pool", "pool.cu")

// Operands are where those of a pool are among an op's; Cols is -1 where every column exists.
type Operands struct{ Keys, Queue, Pointer, Cols int }

// copies are operands of a product with the pool as it wants them: of its type, with rows that begin at multiples of 16
// bytes.
type copies struct {
	c       *exec.DeviceCall
	at      Operands
	t       exec.Type
	n, wide int // N and C
	ld      int // of the pool's copy

	left, leftCols, leftLD int // operand 0 is copied where it is rounded

	assemble, widen *cuda.Kernel
	pool, rounded   cuda.Pointer
}

// newCopies prepares the product of operand 0 with the pool at.
func newCopies(c *exec.DeviceCall, at Operands) *copies {
	x := &copies{c: c, at: at, n: c.In[at.Queue].Shape[0], wide: c.In[at.Queue].Shape[1], left: c.In[0].Shape[0],
		leftCols: c.In[0].Shape[1]}
	typed, size := cuda.Macro{Name: "V", Value: "float"}, int64(4)
	x.ld, x.leftLD = (x.wide+3)/4*4, x.leftCols
	if c.BF16 {
		x.t, typed, size = exec.BFloat16, cuda.Macro{Name: "V", Value: "bf16"}, 2
		x.ld, x.leftLD = (x.wide+7)/8*8, (x.leftCols+7)/8*8
	}
	macros := []cuda.Macro{typed, cuda.Is("VEC", x.wide%4 == 0)}
	x.assemble, x.widen = cuda.Load(c, poolSource, "assemble", macros...), cuda.Load(c, poolSource, "widen", macros...)
	pool := (int64(x.n)*int64(x.ld)*size + 255) / 256 * 256
	scratch := cuda.Scratch(c, pool+int64(x.left)*int64(x.leftLD)*2)
	x.pool, x.rounded = scratch, scratch+cuda.Pointer(pool)
	return x
}

// run copies the pool, and operand 0 where it is rounded, and returns where the latter lies.
func (x *copies) run() (left cuda.Pointer) {
	in := x.c.In
	x.assemble.Enqueue(cuda.Grid{X: cuda.Blocks(x.n, 8), Threads: 32, ThreadsY: 8},
		x.pool, in[x.at.Keys], in[x.at.Queue], in[x.at.Pointer], cuda.Optional(x.c, x.at.Cols), in[x.at.Keys].Shape[0],
		x.n, x.wide, x.ld)
	if x.t == exec.Float32 {
		return cuda.At(in[0])
	}
	units := x.left * x.leftLD
	x.widen.Enqueue(cuda.Each(units), x.rounded, in[0], int64(units), x.leftCols, x.leftLD)
	return x.rounded
}

// Similarity is operand 0 (B, C) times the transpose of the pool.
func Similarity(at Operands) cuda.Steps {
	return timesPool(at, func(x *copies) cuda.Product {
		return cuda.Product{TransB: true, M: x.left, N: x.n, K: x.wide, LDC: x.n}
	})
}

// Gradient is operand 0 (B, N) times the pool.
func Gradient(at Operands) cuda.Steps {
	return timesPool(at, func(x *copies) cuda.Product {
		return cuda.Product{M: x.left, N: x.wide, K: x.n, LDC: x.wide}
	})
}

// timesPool is the product of operand 0 with the pool that shape says.
func timesPool(at Operands, shape func(x *copies) cuda.Product) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		x := newCopies(c, at)
		p := shape(x)
		p.LDA, p.LDB, p.A, p.B = x.leftLD, x.ld, x.t, x.t
		return func() {
			d := cuda.Of(c)
			d.Note(d.Multiply(p, x.run(), x.pool, cuda.At(c.Out), 0))
		}
	})
}

// Columns takes n columns from the pointer on.
func Columns(n int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, poolSource, "pool_columns", cuda.Macro{Name: "V", Value: "float"}, cuda.Is("VEC", false))
		values := c.Out.Shape.TotalSize()
		return func() { k.Enqueue(cuda.Each(values), c.Out, c.In[0], c.In[1], int64(values), n, c.In[0].Shape[1]) }
	})
}
