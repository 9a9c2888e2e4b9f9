package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// DropoutBits returns random bits for n rows of cols elements, each one with
// probability keep (rounded to 1/65536): int32 words, (n*ceil(cols/32)), where
// element j of a row is bit j%32 of the row's word j/32. What the bits after a row's
// last element hold is of no consequence.
//
// key (2) int32 is drawn anew for every step; site tells the dropout places of a
// graph apart. Bits are a function of key, site and position alone. A third value of the key
// says that the rows are a part of more, from that row on.
func DropoutBits(key *gorgonia.Node, site uint64, n, cols int, keep float32) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "dropout bits", Args: fmt.Sprintf("site=%d n=%d cols=%d keep=%g", site, n, cols, keep),
		Diff: []bool{false}, Ints: true,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{n * MaskWords(cols)}, op.All(
				op.Need(len(in[0]) == 1 && (in[0][0] == 2 || in[0][0] == 3),
					"key must have shape (2), or (3) with the number of the first row (got %v)", in[0]),
				op.Need(n > 0 && cols > 0, "want at least one row and column (got %d, %d)", n, cols),
				CheckKeep(keep),
			)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), 512, func(_, lo, hi int) {
				k := c.In[0].I32
				stream, first := uint64(uint32(k[0]))|uint64(uint32(k[1]))<<32, 0
				if len(k) == 3 {
					first = int(k[2]) * MaskWords(cols)
				}
				vector.DropoutBits(c.Out.I32[lo:hi], stream+site*siteStep, uint64(first+lo), keep)
			})
		},
		On: oncuda.DropoutBits(site*siteStep, MaskWords(cols), keep),
	}, key)
}

// DropoutShare is DropoutBits of the rows that one of several processes, ranks, has of a global batch: a row has the
// bits that it has where one process has the whole. share (2) int32 is the rank and the number of ranks. The n rows are
// so many stacks, each of which has an equal share for every rank in their order. With places (M) int32 they are
// instead those of M places, n/M rows each, whose numbers in the whole places says, and share and stacks say nothing.
func DropoutShare(key, share, places *gorgonia.Node, site uint64, n, stacks, cols int, keep float32) *gorgonia.Node {
	words := MaskWords(cols)
	o := &op.Op{
		Kind: "dropout share", Args: fmt.Sprintf("site=%d n=%d stacks=%d cols=%d keep=%g", site, n, stacks, cols, keep),
		Diff: []bool{false, false}, Ints: true,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			err := op.All(
				op.Need(in[0].Eq(tensor.Shape{2}) && in[1].Eq(tensor.Shape{2}),
					"key and share must have shape (2) (got %v and %v)", in[0], in[1]),
				op.Need(n > 0 && cols > 0, "want at least one row and column (got %d, %d)", n, cols),
				op.Need(stacks > 0 && n%max(1, stacks) == 0, "want stacks of equal size (got %d rows, %d stacks)", n,
					stacks),
				CheckKeep(keep),
			)
			if err == nil && len(in) == 3 {
				err = op.Need(stacks == 1 && len(in[2]) == 1 && n%in[2][0] == 0,
					"want places (M) of %d rows in one stack (got %v, %d stacks)", n, in[2], stacks)
			}
			return tensor.Shape{n * words}, err
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			part := n / stacks * words // words of a run of rows that follow each other in the whole too
			if len(c.In) == 3 {
				part = n / c.In[2].Dim(0) * words
			}
			return c.For(c.Out.Len(), 512, func(_, lo, hi int) {
				k, share := c.In[0].I32, c.In[1].I32
				stream := uint64(uint32(k[0])) | uint64(uint32(k[1]))<<32
				for lo < hi {
					i := lo / part
					first := (i*int(share[1]) + int(share[0])) * part
					if len(c.In) == 3 {
						first = int(c.In[2].I32[i]) * part
					}
					to := min(hi, (i+1)*part)
					vector.DropoutBits(c.Out.I32[lo:to], stream+site*siteStep, uint64(first+lo-i*part), keep)
					lo = to
				}
			})
		},
		On: oncuda.DropoutShare(site*siteStep, n, stacks, words, keep),
	}
	in := []*gorgonia.Node{key, share}
	if places != nil {
		in, o.Diff = append(in, places), append(o.Diff, false)
	}
	return op.Apply(o, in...)
}

// siteStep spreads the sites of one key over the streams of random words: 2^64 over
// the golden ratio.
const siteStep = 0x9e3779b97f4a7c15

// Dropout returns x (R, D) with the elements whose bit is zero set to 0 and the
// others divided by keep. bits are DropoutBits for R rows of D elements.
func Dropout(x, bits *gorgonia.Node, keep float32) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "dropout", Args: fmt.Sprintf("keep=%g", keep), Diff: []bool{true, false}, InPlace: []int{0},
		Accumulates: true,
		WritesHalf:  []int{op.Output},
		Shape:       func(in []tensor.Shape) (tensor.Shape, error) { return droppedShape(in, keep) },
		Host: func(c *exec.Call) (exec.Step, error) {
			scale := 1 / keep
			return droppedRows(c, func(at, n int, bits []int32) {
				x := c.In[0].F32[at : at+n]
				if c.Out.BF16 != nil {
					vector.DropoutToBF16(c.Out.BF16[at:at+n], x, bits, scale)
					return
				}
				out := c.Out.F32[at : at+n]
				if c.Accumulate {
					vector.DropoutAdd(out, out, x, bits, scale)
				} else {
					vector.Dropout(out, x, bits, scale)
				}
			}), nil
		},
		On: oncuda.Dropout(keep),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Dropout(dy, in[1], keep), nil}
		},
	}, x, bits)
}

// CheckKeep refuses a share of values kept outside (0, 1].
func CheckKeep(keep float32) error {
	return op.Need(keep > 0 && keep <= 1, "keep must be in (0, 1] (got %g)", keep)
}
