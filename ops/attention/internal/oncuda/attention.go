package oncuda

import (
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// Kernels of one set of names and parameters, in two precisions.
var (
	halvesSource = cuda.NewSource(files, "attention in bfloat16", "shared.cuh", "halves.cuh", "halves_forward.cu",
		"halves_backward.cu")
	floatsSource = cuda.NewSource(files, "attention in float32", "shared.cuh", "floats.cu")
	sortSource   = cuda.NewSource(files, "rows by key sequence", "sort.cu")
)

// Attention is an attention op. Index, Lengths, Bits and Bias are the positions of those operands, or -1.
type Attention struct {
	Self, Causal               bool
	LQ, LK, Heads              int
	Keep                       float32
	Index, Lengths, Bits, Bias int
}

// work is what the kernels of an attention op are made of.
type work struct {
	Attention
	rows, seqs, e int
	c             *exec.DeviceCall
	halves        bool // bfloat16, by tensor cores
	macros        []cuda.Macro
}

// prepare prepares a call, of the backward op if backward.
func (a Attention) prepare(c *exec.DeviceCall, backward bool) *work {
	rows, d := c.In[0].Shape[0]/a.LQ, c.In[0].Shape[1]
	seqs := rows
	if a.Self {
		d /= 3
	} else {
		seqs = c.In[1].Shape[0] / a.LK
	}
	x := &work{Attention: a, rows: rows, seqs: seqs, e: d / a.Heads, c: c}
	out, dout, dq, dkv := c.Out, c.Out, c.Out, c.Out
	if backward {
		out, dout = c.In[len(c.In)-2], c.In[len(c.In)-1]
		if !a.Self {
			dkv = c.Aux[0]
		}
	}
	x.halves = c.BF16
	for _, o := range []exec.Operand{c.In[0], x.keyValues(), out, dout, dq, dkv} {
		x.halves = x.halves || o.Type == exec.BFloat16
	}
	x.macros = []cuda.Macro{
		cuda.Value("E", x.e), cuda.Is("SELF", a.Self), cuda.Is("INDEX", a.Index >= 0),
		cuda.Is("LENGTHS", a.Lengths >= 0),
		cuda.Is("DROPOUT", a.Bits >= 0), cuda.Is("BIAS", a.Bias >= 0), cuda.Is("CAUSAL", a.Causal),
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
func (x *work) fits() bool {
	if x.halves {
		return x.e <= mostHalfWidth
	}
	return x.e <= mostFloatWidth
}

// keyValues returns the operand that holds the keys and values.
func (x *work) keyValues() exec.Operand {
	if x.Self {
		return x.c.In[0]
	}
	return x.c.In[1]
}

// Forward is the forward op's step.
func (a Attention) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		x := a.prepare(c, false)
		if !x.fits() {
			return nil
		}
		attend := x.tiled("attend", a.LQ, a.LK, x.rows*a.Heads, false)
		var sort *cuda.Kernel
		if a.Index >= 0 {
			sort = cuda.Load(c, sortSource, "sort_rows")
		}
		return func() {
			if sort != nil {
				grid := cuda.Grid{X: cuda.Blocks(x.rows+x.seqs+1, 256), Threads: 256}
				sort.Enqueue(grid, c.Aux[1], c.Aux[2], c.In[a.Index], x.rows, x.seqs)
			}
			args := []any{c.In[0], x.keyValues(), cuda.Optional(c, a.Index), cuda.Optional(c, a.Lengths),
				cuda.Optional(c, a.Bits), cuda.Optional(c, a.Bias),
				c.Out, c.Aux[0], a.LQ, a.LK, a.Heads, x.seqs, x.alpha(), a.rescale()}
			if x.halves {
				order, starts := any(nil), any(nil)
				if a.Index >= 0 {
					order, starts = c.Aux[1], c.Aux[2]
				}
				args = slices.Insert(args, 8, any(x.rows))
				args = slices.Insert(args, 2, order, starts)
			}
			attend.kernel.Enqueue(attend.grid, args...)
		}
	})
}

// alpha returns what scores are multiplied by.
func (x *work) alpha() float32 { return float32(1 / math.Sqrt(float64(x.e))) }

// rescale returns what kept probabilities are multiplied by: 1 where none is dropped, as in inference whatever Keep
// says.
func (a Attention) rescale() float32 {
	if a.Bits < 0 {
		return 1
	}
	return 1 / a.Keep
}

// Backward is the backward op's step: the gradient of the queries, that of keys and values, and that of the bias. Each
// makes the probabilities again, so that none adds to what another one computes.
func (a Attention) Backward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		x := a.prepare(c, true)
		if !x.fits() {
			return nil
		}
		ofQueries := x.tiled("attend_dq", a.LQ, a.LK, x.rows*a.Heads, false)
		ofKeys := x.tiled("attend_dkv", a.LK, a.LQ, x.seqs*a.Heads, a.Index >= 0)
		var ofBias tiles
		if a.Bias >= 0 {
			ofBias = x.tiled("attend_dbias", a.LQ, a.LK, a.Heads, false)
			tile := 64
			if x.halves && a.LK <= 32 {
				tile = 32
			}
			ofBias.grid.X *= cuda.Blocks(a.LK, tile)
		}
		delta := cuda.Scratch(c, 4*int64(x.rows)*int64(a.Heads)*int64(a.LQ))
		return func() {
			kv, dout, lse := x.keyValues(), c.In[len(c.In)-1], c.InAux[len(c.In)-2][0]
			lengths, bits, bias := cuda.Optional(c, a.Lengths), cuda.Optional(c, a.Bits), cuda.Optional(c, a.Bias)
			dkv, order, starts := c.Out, any(nil), any(nil)
			dbias := 0 // among the auxiliary results
			if !a.Self {
				dkv, dbias = c.Aux[0], 1
			}
			if a.Index >= 0 {
				order, starts = c.InAux[len(c.In)-2][1], c.InAux[len(c.In)-2][2]
			}
			args := []any{c.In[0], kv, cuda.Optional(c, a.Index), lengths, bits, bias, c.In[len(c.In)-2], dout, lse,
				delta,
				c.Out, a.LQ, a.LK, a.Heads, x.seqs, x.alpha(), a.rescale()}
			if x.halves {
				args = slices.Insert(args, 11, any(x.rows))
				args = slices.Insert(args, 2, order, starts)
			}
			ofQueries.kernel.Enqueue(ofQueries.grid, args...)
			ofKeys.kernel.Enqueue(ofKeys.grid, c.In[0], kv, order, starts, lengths, bits, bias, dout, lse, delta,
				dkv, a.LQ, a.LK, a.Heads, x.alpha(), a.rescale())
			if a.Bias < 0 {
				return
			}

			ofBias.kernel.Enqueue(ofBias.grid, c.In[0], kv, lengths, bits, bias, dout, lse, delta,
				c.Aux[dbias], x.rows, a.LQ, a.LK, a.Heads, x.alpha(), a.rescale())
		}
	})
}
