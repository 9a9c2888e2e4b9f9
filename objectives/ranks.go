package objectives

import (
	"fmt"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/exchange"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/pool"
	"gorgonia.org/gorgonia"
)

// A step of one of R processes, ranks, has the rows [r*B, (r+1)*B) of a global batch of R*B, and its loss is the one
// whose mean over the ranks is that of the global batch. A loss gets there in one of two ways. It compares its own rows
// with the columns of all ranks, by Gather, and is their mean. Or it is computed on every rank from the rows of all, by
// Whole, and is the same on each. On one process both are the step itself, and no exchange is built.

// Ranks are the processes that a step is one of.
type Ranks struct {
	Group parallel.Group // nil: this one alone
	// Local: rows are compared with those of their own rank alone (parallel.contrast).
	Local bool
	// LocalNegatives: so are the hard negatives of matching (parallel.negatives).
	LocalNegatives bool
}

// Size is the number of ranks.
func (r Ranks) Size() int {
	if r.Group == nil {
		return 1
	}
	return r.Group.Size()
}

// Rank is the number of this one.
func (r Ranks) Rank() int {
	if r.Group == nil {
		return 0
	}
	return r.Group.Rank()
}

// splits says whether rows are compared with those of other ranks.
func (s *Step) splits() bool { return s.Ranks.Size() > 1 && !s.Ranks.Local && s.own == nil }

// All is the number of rows that a row is compared with, N: those of the global batch.
func (s *Step) All() int {
	if s.splits() {
		return s.Rows * s.Ranks.Size()
	}
	return s.Rows
}

// First is the place of the first row among them.
func (s *Step) First() int {
	if s.splits() {
		return s.Rows * s.Ranks.Rank()
	}
	return 0
}

// Gather returns the rows x (n, ...) of all ranks, those of rank 0 first: (R*n, ...). On one process, with local
// comparisons and in a step of all rows it is x itself.
func (s *Step) Gather(x *gorgonia.Node) *gorgonia.Node {
	if x == nil || !s.splits() {
		return x
	}
	return exchange.Gather(s.Ranks.Group, x)
}

// gatherStacks is Gather of k stacks of rows (k*n, ...), each of the batch: (k*R*n, ...), in the same order.
func (s *Step) gatherStacks(x *gorgonia.Node, k int) *gorgonia.Node {
	if !s.splits() {
		return x
	}
	if k == 1 {
		return s.Gather(x)
	}
	n := x.Shape()[0] / k
	var all gorgonia.Nodes
	for i := range k {
		all = append(all, s.Gather(layout.StridedRows(x, i*n, 1, n)))
	}
	for len(all) > 1 {
		all = append(gorgonia.Nodes{layout.ConcatRows(all[0], all[1])}, all[2:]...)
	}
	return all[0]
}

// Whole is the step of all rows of the global batch as a loss sees it that is computed on every rank. What it has of
// the towers is gathered. On one process and with local comparisons it is the step itself.
func (s *Step) Whole() *Step {
	if !s.splits() {
		return s
	}
	if s.whole == nil {
		w := *s
		w.own, w.Rows, w.IDs = s, s.All(), s.Gather(s.IDs)
		w.Online = Sides{s.wholeSide(&s.Online.Image), s.wholeSide(&s.Online.Text)}
		w.Teacher = Sides{s.wholeSide(&s.Teacher.Image), s.wholeSide(&s.Teacher.Text)}
		w.Crops = s.Gather(s.Crops)
		s.whole = &w
	}
	return s.whole
}

// wholeSide is a side of all ranks: what heads make of it. Its tokens are those of Step.localOf.
func (s *Step) wholeSide(x *Side) Side {
	w := Side{Head: x.Head, Scope: x.Scope, own: x}
	w.Len, w.Width, w.Begin, w.End = x.Len, x.Width, x.Begin, x.End
	w.Features, w.View, w.Classes = s.Gather(x.Features), s.Gather(x.View), s.Gather(x.Classes)
	return w
}

// globalNegatives says whether hard negatives are rows of all ranks.
func (s *Step) globalNegatives() bool { return s.splits() && !s.Ranks.LocalNegatives }

// ownColumns returns of logits (B, M) against the batch of all ranks and what stands behind it those of this rank, (B,
// B), without a gradient; on one process and with local comparisons the logits themselves.
func (s *Step) ownColumns(logits *gorgonia.Node) *gorgonia.Node {
	if !s.splits() {
		return logits
	}
	return pool.Columns(logits, s.SharedInts("first column", []int32{int32(s.First())}), s.Rows)
}

// ofAll says for the dropout of what follows that every rank has all rows, in a step of Whole, until the function that
// it returns is called.
func (s *Step) ofAll() (end func()) {
	if s.own == nil {
		return func() {}
	}
	return s.Student.Whole()
}

// Column is feed.Inputs.Column, of all rows in a step of Whole.
func (s *Step) Column(c batch.Column, rows int) *gorgonia.Node {
	if s.own != nil {
		return s.own.Gather(s.Inputs.Column(c, s.own.Rows))
	}
	return s.Inputs.Column(c, rows)
}

// mean scales the mean over those rows of this rank that have a label (n) int32 of at least 0, so that the mean of the
// ranks is that over the rows of all.
func (s *Step) mean(x, labels *gorgonia.Node) *gorgonia.Node {
	if s.own != nil || s.Ranks.Size() == 1 {
		return x
	}
	return arith.MulScalar(x, contrast.LabelShare(labels, exchange.Gather(s.Ranks.Group, labels)))
}

// total scales the number of something on this rank, so that the mean of the ranks is the number on all.
func (s *Step) total(x *gorgonia.Node) *gorgonia.Node {
	if s.own != nil || s.Ranks.Size() == 1 {
		return x
	}
	return arith.WeightedSum([]float32{float32(s.Ranks.Size())}, x)
}

// Share returns the rows [lo, hi) of those of the global batch, all in number, that a fill of the step is for.
func (s *Step) Share(f *feed.Step) (lo, hi, all int) {
	if s.own != nil {
		return 0, s.Rows, s.Rows
	}
	return f.Share(s.Rows)
}

// fillNoise fills dst, a part for each row of the step, with what draw gives for them among the rows of the global
// batch.
func (s *Step) fillNoise(dst []float32, r *rand.Rand, f *feed.Step, draw func(*rand.Rand) float32) {
	lo, hi, all := s.Share(f)
	width := len(dst) / s.Rows
	for i := range all * width {
		v := draw(r)
		if i >= lo*width && i < hi*width {
			dst[i-lo*width] = v
		}
	}
}

// FillGumbel fills dst, a part for each row of the step, with standard Gumbel noise for them among the rows of the
// global batch.
func (s *Step) FillGumbel(dst []float32, r *rand.Rand, f *feed.Step) { s.fillNoise(dst, r, f, gumbel) }

// ofRanks appends to dst what all ranks have of a column of the batch at a step, or the rank alone where it stays with
// its own rows.
func (s *Step) ofRanks(dst, own []int32) ([]int32, error) {
	if s.own == nil {
		return append(dst, own...), nil
	}
	all, err := s.Ranks.Group.GatherInts(dst, own)
	if err != nil {
		return nil, fmt.Errorf("objectives: integers of other processes: %w", err)
	}
	return all, nil
}

// stacked are the numbers in the global batch of k stacks of the batch's rows, int32 (k*B); nil on one process.
func (s *Step) stacked(k int) *gorgonia.Node {
	if s.Ranks.Size() == 1 {
		return nil
	}
	n, r, ranks := s.Rows, s.Ranks.Rank(), s.Ranks.Size()
	at := make([]int32, k*n)
	for i := range at {
		at[i] = int32(i/n*n*ranks + r*n + i%n)
	}
	return s.known(fmt.Sprintf("rows of %d stacks", k), at)
}

// known is FixedInts that may be asked for again.
func (s *Step) known(name string, values []int32) *gorgonia.Node {
	return s.Ints(name, func(_ *feed.Step, dst []int32) error {
		copy(dst, values)
		return nil
	}, len(values))
}

// wholePlaces joins the numbers that places of several losses have in the global batch, of each loss so many in all;
// nil on one process.
func wholePlaces(places []encoders.Places, counts []int) *gorgonia.Node {
	var all gorgonia.Nodes
	first := 0
	for i, p := range places {
		if p.Whole == nil {
			return nil
		}
		all = append(all, layout.AddInt(p.Whole, first))
		first += counts[i]
	}
	return layout.ConcatInts(all...)
}
