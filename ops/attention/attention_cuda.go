package attention

import (
	_ "embed"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

//go:embed shared.cuh
var sharedText string

//go:embed halves.cuh
var halvesText string

//go:embed halves_forward.cu
var forwardText string

//go:embed halves_backward.cu
var backwardText string

//go:embed floats.cu
var floatsText string

//go:embed sort.cu
var sortText string

// Kernels of one set of names and parameters, in two precisions.
var (
	halvesSource = cuda.Source{Name: "attention in bfloat16", Text: sharedText + halvesText + forwardText + backwardText}
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
		args := []any{c.In[0], x.keyValues(), x.operand(a.index), x.operand(a.lengths), x.operand(a.bits), x.operand(a.bias),
			c.Out, c.Aux[0], a.lq, a.lk, a.heads, x.seqs, x.alpha(), a.rescale()}
		if x.halves {
			order, starts := any(nil), any(nil)
			if a.index >= 0 {
				order, starts = c.Aux[1], c.Aux[2]
			}
			args = slices.Insert(args, 8, any(x.rows))
			args = slices.Insert(args, 2, order, starts)
		}
		return attend.kernel.Launch(attend.grid, args...)
	}, nil
}

// alpha returns what scores are multiplied by.
func (x *attentionOnCUDA) alpha() float32 { return float32(1 / math.Sqrt(float64(x.e))) }

// rescale returns what kept probabilities are multiplied by: 1 where none is dropped, as in inference whatever Keep says.
func (a *attention) rescale() float32 {
	if a.bits < 0 {
		return 1
	}
	return 1 / a.keep
}

// backwardOnCUDA is the backward op's step: the gradient of the queries, that of keys and values, and that of the bias. Each
// makes the probabilities again, so that none adds to what another one computes.
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
		dkv, order, starts := c.Out, any(nil), any(nil)
		if !a.self {
			dkv = c.Aux[0]
		}
		if a.index >= 0 {
			order, starts = c.InAux[a.operands][1], c.InAux[a.operands][2]
		}
		args := []any{c.In[0], kv, x.operand(a.index), lengths, bits, bias, c.In[a.operands], dout, lse, delta,
			c.Out, a.lq, a.lk, a.heads, x.seqs, x.alpha(), a.rescale()}
		if x.halves {
			args = slices.Insert(args, 11, any(x.rows))
			args = slices.Insert(args, 2, order, starts)
		}
		if err := ofQueries.kernel.Launch(ofQueries.grid, args...); err != nil {
			return err
		}
		if err := ofKeys.kernel.Launch(ofKeys.grid, c.In[0], kv, order, starts, lengths, bits, bias, dout, lse, delta,
			dkv, a.lq, a.lk, a.heads, x.alpha(), a.rescale()); err != nil || a.bias < 0 {
			return err
		}
		return ofBias.kernel.Launch(ofBias.grid, c.In[0], kv, lengths, bits, bias, dout, lse, delta,
			c.Aux[a.biasAux()], x.rows, a.lq, a.lk, a.heads, x.alpha(), a.rescale())
	}, nil
}
