package ops

import (
	"fmt"
	"math"

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
			threshold := uint32(math.Round(float64(keep) * (1 << 16)))
			pairs := (c.Out.Len() + 1) / 2
			body := func(_, lo, hi int) {
				k := c.In[0].I32
				state := mix64(uint64(uint32(k[0])) | uint64(uint32(k[1]))<<32)
				state = mix64(state + site*golden64)
				out := c.Out.I32
				for p := lo; p < hi; p++ {
					bits := randomBits(state+uint64(p)*16*golden64, threshold)
					out[2*p] = int32(bits)
					if 2*p+1 < len(out) {
						out[2*p+1] = int32(bits >> 32)
					}
				}
			}
			return func() error {
				c.Engine.For(pairs, 256, body)
				return nil
			}, nil
		},
	}, key)
}

// golden64 is 2^64 over the golden ratio, the step of SplitMix64.
const golden64 = 0x9e3779b97f4a7c15

// mix64 is the output function of SplitMix64 (Steele, Lea and Flood 2014, figure 16).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// randomBits returns 64 bits that are ones with probability threshold/65536 each.
// Random words are joined by an OR for every 1 and an AND for every 0 in the binary
// fraction, lowest digit first: an OR takes probability p to (1+p)/2, an AND to p/2.
func randomBits(state uint64, threshold uint32) uint64 {
	if threshold >= 1<<16 {
		return math.MaxUint64
	}
	var bits uint64
	for range 16 {
		state += golden64
		if threshold&1 != 0 {
			bits |= mix64(state)
		} else if bits != 0 {
			bits &= mix64(state)
		}
		threshold >>= 1
	}
	return bits
}

// Dropout returns x (R, D) with the elements whose bit is zero set to 0 and the
// others divided by keep. bits are DropoutBits for R rows of D elements.
func Dropout(x, bits *gorgonia.Node, keep float32) *gorgonia.Node {
	return apply(&op{
		kind: "dropout", args: fmt.Sprintf("keep=%g", keep), diff: []bool{true, false}, inPlace: []int{0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := need(len(in[0]) == 2, "want x (R, D)"); err != nil {
				return nil, err
			}
			return in[0].Clone(), all(checkVector(in[1], "bits", in[0][0]*maskWords(in[0][1])), checkKeep(keep))
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			words, scale := maskWords(cols), 1/keep
			if cols%32 == 0 { // no gaps between the rows: one long row
				body := func(_, lo, hi int) {
					kernel.Dropout(c.Out.F32[lo*32:hi*32], c.In[0].F32[lo*32:hi*32], c.In[1].I32[lo:hi], scale)
				}
				return func() error {
					c.Engine.For(rows*words, elementGrain/32, body)
					return nil
				}, nil
			}
			body := func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					at, to := r*cols, (r+1)*cols
					kernel.Dropout(c.Out.F32[at:to], c.In[0].F32[at:to], c.In[1].I32[r*words:(r+1)*words], scale)
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
