package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// maskWords returns the int32 words of one row of a dropout mask.
func maskWords(cols int) int { return (cols + 31) / 32 }

// DropoutBits returns random bits for n rows of cols elements, each one with
// probability keep (rounded to 1/65536): int32 words, (n*ceil(cols/32)), where
// element j of a row is bit j%32 of the row's word j/32. What the bits after a row's
// last element hold is of no consequence.
//
// key (2) int32 is drawn anew for every step; site tells the dropout places of a
// graph apart. Bits are a function of key, site and position alone.
func DropoutBits(key *gorgonia.Node, site uint64, n, cols int, keep float32) *gorgonia.Node {
	return apply(&op{
		kind: "dropout bits", args: fmt.Sprintf("site=%d n=%d cols=%d keep=%g", site, n, cols, keep),
		diff: []bool{false}, ints: true,
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{n * maskWords(cols)}, all(
				checkVector(in[0], "key", 2),
				need(n > 0 && cols > 0, "want at least one row and column (got %d, %d)", n, cols),
				checkKeep(keep),
			)
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) {
				k := c.In[0].I32
				stream := uint64(uint32(k[0])) | uint64(uint32(k[1]))<<32
				kernel.DropoutBits(c.Out.I32[lo:hi], stream+site*siteStep, uint64(lo), keep)
			}
			return func() error {
				c.Engine.For(c.Out.Len(), 512, body)
				return nil
			}, nil
		},
	}, key)
}

// siteStep spreads the sites of one key over the streams of random words: 2^64 over
// the golden ratio.
const siteStep = 0x9e3779b97f4a7c15

// Dropout returns x (R, D) with the elements whose bit is zero set to 0 and the
// others divided by keep. bits are DropoutBits for R rows of D elements.
func Dropout(x, bits *gorgonia.Node, keep float32) *gorgonia.Node {
	return apply(&op{
		kind: "dropout", args: fmt.Sprintf("keep=%g", keep), diff: []bool{true, false}, inPlace: []int{0}, accumulates: true,
		writesHalf: []int{output},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := need(len(in[0]) == 2, "want x (R, D)"); err != nil {
				return nil, err
			}
			return in[0].Clone(), all(checkVector(in[1], "bits", in[0][0]*maskWords(in[0][1])), checkKeep(keep))
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			words, scale := maskWords(cols), 1/keep
			part := func(at, to, word, end int) {
				x, bits := c.In[0].F32[at:to], c.In[1].I32[word:end]
				if c.Out.BF16 != nil {
					kernel.DropoutToBF16(c.Out.BF16[at:to], x, bits, scale)
					return
				}
				out := c.Out.F32[at:to]
				if c.Accumulate {
					kernel.DropoutAdd(out, out, x, bits, scale)
				} else {
					kernel.Dropout(out, x, bits, scale)
				}
			}
			if cols%32 == 0 { // no gaps between the rows: one long row
				body := func(_, lo, hi int) { part(lo*32, hi*32, lo, hi) }
				return func() error {
					c.Engine.For(rows*words, elementGrain/32, body)
					return nil
				}, nil
			}
			body := func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					part(r*cols, (r+1)*cols, r*words, (r+1)*words)
				}
			}
			return func() error {
				c.Engine.For(rows, grainRows(cols), body)
				return nil
			}, nil
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Dropout(dy, in[1], keep), nil}
		},
	}, x, bits)
}

func checkKeep(keep float32) error {
	return need(keep > 0 && keep <= 1, "keep must be in (0, 1] (got %g)", keep)
}
