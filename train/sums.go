package train

import (
	"cmp"
	"slices"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/model"
)

// gradual is a system that tells of gradients while its Step computes others, see model.Trainer.
type gradual interface {
	GradientOrder() []model.Span
	OnGradients(f func(k int))
}

var _ gradual = (*model.Trainer)(nil)

// sums are the gradients of an update as ranks add them up: in buckets, each of which is begun as soon as the
// backward pass of the last micro-batch has completed it, while that goes on. The buckets and their order follow from
// the graph and from parallel.bucket_mb, and are the same on all ranks.
//
// A device replays the backward pass as a whole. Its gradients are complete at the end, and from then on a bucket comes
// to the host while those before it are summed.
type sums struct {
	group parallel.Group
	model gradual   // nil: gradients are complete after the backward pass, as on a device
	grads []float32 // of a micro-batch
	total []float32 // what is summed: grads, or the sum of those of several micro-batches
	order []model.Span
	// buckets are what is begun once span k of order is complete, or with no order in the end: neighbours among the
	// spans are one.
	buckets [][]model.Span
	several bool // micro-batches
	told    func(k int)
	there   *cuda.Mirror // of total on a device; nil: the host has it
}

// newSums sums total over a group, in buckets of so many values: the gradients grads of m, or the sum of those of
// several micro-batches. there is the mirror of total on a device, nil without one.
func newSums(g parallel.Group, m System, grads, total []float32, there *cuda.Mirror, values int) *sums {
	s := &sums{group: g, grads: grads, total: total, several: &grads[0] != &total[0], there: there}
	if x, ok := m.(gradual); ok {
		s.order = x.GradientOrder()
		s.model = x
	}
	s.told = s.complete
	if there != nil {
		s.model = nil
		there.Pin()
	}
	if s.order == nil {
		s.model = nil
		s.buckets = [][]model.Span{divided(len(total), values)}
		return s
	}
	s.buckets = bucketsOf(s.order, values)
	return s
}

// divided divides n values into buckets.
func divided(n, values int) (list []model.Span) {
	for lo := 0; lo < n; lo += values {
		list = append(list, model.Span{Lo: lo, Hi: min(lo+values, n)})
	}
	return list
}

// bucketsOf collects spans in their order until they have so many values or are all. At k stands what is full with span
// k.
func bucketsOf(order []model.Span, values int) [][]model.Span {
	buckets := make([][]model.Span, len(order))
	var open []model.Span
	size := 0
	for k, x := range order {
		open = append(open, x)
		if size += x.Hi - x.Lo; size >= values || k == len(order)-1 {
			buckets[k], open, size = joined(open), nil, 0
		}
	}
	return buckets
}

// joined sorts spans and makes one of neighbours.
func joined(spans []model.Span) (list []model.Span) {
	slices.SortFunc(spans, func(a, b model.Span) int { return cmp.Compare(a.Lo, b.Lo) })
	for _, x := range spans {
		if n := len(list); n > 0 && list[n-1].Hi == x.Lo {
			list[n-1].Hi = x.Hi
		} else {
			list = append(list, x)
		}
	}
	return list
}

// watch has the next micro-batch, the last one of an update, begin the sums.
func (s *sums) watch() {
	if s.model != nil {
		s.model.OnGradients(s.told)
	}
}

// watches says whether the sums add the gradients of the last micro-batch to those of the others.
func (s *sums) watches() bool { return s != nil && s.model != nil }

// complete is told that the gradients of a span are.
func (s *sums) complete(k int) {
	if x := s.order[k]; s.several {
		total := s.total[x.Lo:x.Hi]
		vector.Add(total, total, s.grads[x.Lo:x.Hi])
	}
	s.begin(k)
}

func (s *sums) begin(k int) {
	for _, x := range s.buckets[k] {
		s.group.Begin(s.total[x.Lo:x.Hi])
	}
}

// wait ends the watch and waits for the sums, which are begun now if they were not.
func (s *sums) wait() error {
	if s.there != nil {
		return s.waitThere()
	}
	if s.model == nil {
		s.begin(0)
	} else {
		s.model.OnGradients(nil)
	}
	return s.group.Wait()
}

// waitThere sums what a device has.
func (s *sums) waitThere() error {
	for k, bucket := range s.buckets {
		for _, x := range bucket {
			if err := s.there.FetchSpan(x.Lo, x.Hi); err != nil {
				return err // which ends all ranks: the others may never begin what this one would wait for
			}
		}
		s.begin(k)
	}
	if err := s.group.Wait(); err != nil {
		return err
	}
	for _, bucket := range s.buckets {
		for _, x := range bucket {
			if err := s.there.StoreSpan(x.Lo, x.Hi); err != nil {
				return err
			}
		}
	}
	return nil
}
