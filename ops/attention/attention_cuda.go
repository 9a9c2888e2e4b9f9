package attention

import (
	_ "embed"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

//go:embed shared.cuh
var sharedText string

//go:embed halves.cu
var halvesText string

//go:embed floats.cu
var floatsText string

//go:embed sort.cu
var sortText string

// Kernels of one set of names and parameters, in two precisions.
var (
	halvesSource = cuda.Source{Name: "attention in bfloat16", Text: sharedText + halvesText}
	floatsSource = cuda.Source{Name: "attention in float32", Text: sharedText + floatsText}
	sortSource   = cuda.Source{Name: "rows by key sequence", Text: sortText}
)

// attentionOnCUDA is what the kernels of an attention op are made of.
type attentionOnCUDA struct {
	*attention
	attentionDims
	c      *exec.DeviceCall
	halves bool // bfloat16, by tensor cores
	macros []cuda.Macro
}

// onCUDA prepares a call, of the backward op if backward.
func (a *attention) onCUDA(c *exec.DeviceCall, backward bool) *attentionOnCUDA {
	shapes := []tensor.Shape{c.In[0].Shape}
	if !a.self {
		shapes = append(shapes, c.In[1].Shape)
	}
	x := &attentionOnCUDA{attention: a, attentionDims: a.dims(shapes), c: c}
	out, dout, dq, dkv := c.Out, c.Out, c.Out, c.Out
	if backward {
		out, dout = c.In[a.operands], c.In[a.operands+1]
		if !a.self {
			dkv = c.Aux[0]
		}
	}
	x.halves = c.BF16
	for _, o := range []exec.Operand{c.In[0], x.keyValues(), out, dout, dq, dkv} {
		x.halves = x.halves || o.Type == exec.BFloat16
	}
	x.macros = []cuda.Macro{
		cuda.Value("E", x.e), cuda.Is("SELF", a.self), cuda.Is("INDEX", a.index >= 0), cuda.Is("LENGTHS", a.lengths >= 0),
		cuda.Is("DROPOUT", a.bits >= 0), cuda.Is("BIAS", a.bias >= 0), cuda.Is("CAUSAL", a.causal),
	}
	if x.halves {
		x.macros = append(x.macros, cuda.Type("Q", c.In[0]), cuda.Type("KV", x.keyValues()), cuda.Type("O", out),
			cuda.Type("DO", dout), cuda.Type("DQ", dq), cuda.Type("DKV", dkv))
	}
	return x
}

// mostFloatWidth is the widest head of the kernels in float32, mostHalfWidth in bfloat16.
const mostFloatWidth, mostHalfWidth = 128, 128

// fits says whether there are kernels for the call.
func (x *attentionOnCUDA) fits() bool {
	if x.halves {
		return x.e <= mostHalfWidth
	}
	return x.e <= mostFloatWidth
}

// keyValues returns the operand that holds the keys and values.
func (x *attentionOnCUDA) keyValues() exec.Operand {
	if x.self {
		return x.c.In[0]
	}
	return x.c.In[1]
}

// operand returns an optional operand as a kernel's parameter. It is called when a step runs.
func (x *attentionOnCUDA) operand(at int) any {
	if at < 0 {
		return nil
	}
	return x.c.In[at]
}

// tiles is how a kernel cuts up its work.
type tiles struct {
	kernel *cuda.Kernel
	grid   cuda.Grid
}

// tiled returns a kernel whose blocks take a piece of `fixed` tokens each, one block after another for pieces of them and for `many`
// heads, and pass over `moving` tokens in shared memory, several times over if again.
func (x *attentionOnCUDA) tiled(name string, fixed, moving, many int, again bool) tiles {
	macros := append(slices.Clone(x.macros), cuda.Is(strings.ToUpper(name), true))
	if !x.halves {
		// Blocks of 64 rows of 64 or 128 values, and of 64 x 64 scores, of floats; see floats.cu.
		width, panels := 64, map[string]int{"attend": 3}[name]
		if x.e > 64 {
			width = 128
		}
		if panels == 0 {
			panels = 4
		}
		return tiles{
			kernel: cuda.Load(x.c, &floatsSource, name, macros...),
			grid:   cuda.Grid{X: cuda.Blocks(fixed, 64) * many, Threads: 256, Shared: 4 * 64 * (panels*(width+4) + 64 + 4)},
		}
	}
	// Each warp has 16 of the fixed tokens. They are spread evenly over as few blocks as there can be of so many warps that
	// the registers of a multiprocessor hold two blocks; see halves.cu.
	most := 6
	if name == "attend" {
		most = 8
	}
	rows := cuda.Blocks(fixed, 16)
	blocks := cuda.Blocks(rows, most)
	warps := cuda.Blocks(rows, blocks)
	tile, stages := 64, 2
	if moving <= 32 {
		tile = 32
	}
	if moving <= tile && !again {
		stages = 1
	}
	stride := (x.e+15)/16*16 + 8
	shared := 2 * tile * stride * 2
	if name == "attend_dkv" {
		shared += 2 * tile * 4
		if x.bits >= 0 {
			shared += tile * (warps/2 + 1) * 4
		}
	}
	macros = append(macros, cuda.Value("WARPS", warps), cuda.Value("TILE", tile), cuda.Value("STAGES", stages))
	return tiles{
		kernel: cuda.Load(x.c, &halvesSource, name, macros...),
		grid:   cuda.Grid{X: cuda.Blocks(rows, warps) * many, Threads: 32 * warps, Shared: shared * stages},
	}
}

// forwardOnCUDA is the forward op's step.
func (a *attention) forwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	x := a.onCUDA(c, false)
	if !x.fits() {
		return nil, nil
	}
	attend := x.tiled("attend", a.lq, a.lk, x.rows*a.heads, false)
	var sort *cuda.Kernel
	if a.index >= 0 {
		sort = cuda.Load(c, &sortSource, "sort_rows")
	}
	return func() error {
		if sort != nil {
			grid := cuda.Grid{X: cuda.Blocks(x.rows+x.seqs+1, 256), Threads: 256}
			if err := sort.Launch(grid, c.Aux[1], c.Aux[2], c.In[a.index], x.rows, x.seqs); err != nil {
				return err
			}
		}
		return attend.kernel.Launch(attend.grid, c.In[0], x.keyValues(), x.operand(a.index), x.operand(a.lengths), x.operand(a.bits), x.operand(a.bias),
			c.Out, c.Aux[0], a.lq, a.lk, a.heads, x.seqs, x.alpha(), 1/a.keep)
	}, nil
}

// alpha returns what scores are multiplied by.
func (x *attentionOnCUDA) alpha() float32 { return float32(1 / math.Sqrt(float64(x.e))) }

// backwardOnCUDA is the backward op's step: the gradient of the queries, that of keys and values, and that of the bias. Each makes the
// probabilities again, so that none adds to what another one computes.
func (a *attention) backwardOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	x := a.onCUDA(c, true)
	if !x.fits() {
		return nil, nil
	}
	ofQueries := x.tiled("attend_dq", a.lq, a.lk, x.rows*a.heads, false)
	ofKeys := x.tiled("attend_dkv", a.lk, a.lq, x.seqs*a.heads, a.index >= 0)
	var ofBias tiles
	if a.bias >= 0 {
		ofBias = x.tiled("attend_dbias", a.lq, a.lk, a.heads, false)
		tile := 64
		if x.halves && a.lk <= 32 {
			tile = 32
		}
		ofBias.grid.X *= cuda.Blocks(a.lk, tile)
	}
	delta, err := cuda.Scratch(c, 4*int64(x.rows)*int64(a.heads)*int64(a.lq))
	if err != nil {
		return nil, err
	}
	return func() error {
		kv, dout, lse := x.keyValues(), c.In[a.operands+1], c.InAux[a.operands][0]
		lengths, bits, bias := x.operand(a.lengths), x.operand(a.bits), x.operand(a.bias)
		if err := ofQueries.kernel.Launch(ofQueries.grid, c.In[0], kv, x.operand(a.index), lengths, bits, bias, c.In[a.operands], dout, lse, delta,
			c.Out, a.lq, a.lk, a.heads, x.seqs, x.alpha(), 1/a.keep); err != nil {
			return err
		}
		dkv, order, starts := c.Out, any(nil), any(nil)
		if !a.self {
			dkv = c.Aux[0]
		}
		if a.index >= 0 {
			order, starts = c.InAux[a.operands][1], c.InAux[a.operands][2]
		}
		if err := ofKeys.kernel.Launch(ofKeys.grid, c.In[0], kv, order, starts, lengths, bits, bias, dout, lse, delta,
			dkv, a.lq, a.lk, a.heads, x.alpha(), 1/a.keep); err != nil || a.bias < 0 {
			return err
		}
		return ofBias.kernel.Launch(ofBias.grid, c.In[0], kv, lengths, bits, bias, dout, lse, delta,
			c.Aux[a.biasAux()], x.rows, a.lq, a.lk, a.heads, x.alpha(), 1/a.keep)
	}, nil
}
