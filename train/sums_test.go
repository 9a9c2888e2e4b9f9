package train

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
)

// TestBuckets: spans are collected in their order until a bucket is full, and neighbours are one.
func TestBuckets(t *testing.T) {
	order := []model.Span{{Lo: 40, Hi: 50}, {Lo: 60, Hi: 70}, {Lo: 50, Hi: 60}, {Lo: 0, Hi: 35}, {Lo: 35, Hi: 40}, {Lo: 70, Hi: 71}}
	for values, want := range map[int]string{
		1000: "[[] [] [] [] [] [{0 71}]]",
		25:   "[[] [] [{40 70}] [{0 35}] [] [{35 40} {70 71}]]",
		1:    "[[{40 50}] [{60 70}] [{50 60}] [{0 35}] [{35 40}] [{70 71}]]",
	} {
		if got := fmt.Sprint(bucketsOf(order, values)); got != want {
			t.Errorf("of %d values: %v, want %v", values, got, want)
		}
	}
	if got := fmt.Sprint(divided(10, 4)); got != "[{0 4} {4 8} {8 10}]" {
		t.Errorf("10 values: %v", got)
	}
}

// noting is a rank that notes what is begun.
type noting struct {
	parallel.Group
	begun []int // lengths, and 0 where all are waited for
}

func (n *noting) Begin(x []float32) {
	n.begun = append(n.begun, len(x))
	n.Group.Begin(x)
}

func (n *noting) Wait() error {
	n.begun = append(n.begun, 0)
	return n.Group.Wait()
}

// TestGradientsTravelWhileOthersAreComputed: with small buckets the sums have the bits that they have at once, with one
// micro-batch and with several, and all that is trained is in them once. They begin before the backward pass ends, in the same order on all ranks.
// Gradients that a loss changes wait for its end.
func TestGradientsTravelWhileOthersAreComputed(t *testing.T) {
	for name, sets := range map[string][]string{
		"one": nil, "three micro-batches": {"train.accumulate_steps=3"}, "frozen": {"model.image.freeze=true"}, "adapters": {"model.lora.rank=2"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parallelConfig(t, sets...)
			atOnce, _ := ranksOf(t, cfg, 0, 0)
			var small []*Session
			var groups []*noting
			for _, g := range paralleltest.Ranks(2) {
				n := &noting{Group: g}
				s := check.Get(sessionIn(t, cfg, n, nil, func(all data.Stream) data.Stream { return all }))(t)
				s.sums = newSums(s.group, s.model, s.sums.grads, s.sums.total, nil, 500)
				small, groups = append(small, s), append(groups, n)
			}
			for _, s := range atOnce { // and not before the end
				s.sums.order, s.sums.model, s.sums.buckets = nil, nil, [][]model.Span{divided(len(s.sums.total), 1<<20)}
			}
			for step := range 3 {
				if _, errs := together(t, atOnce, step); errors.Join(errs...) != nil {
					t.Fatal(errs)
				}
				if _, errs := together(t, small, step); errors.Join(errs...) != nil {
					t.Fatal(errs)
				}
			}
			for i, s := range small {
				sameMemory(t, fmt.Sprint("rank ", i), s.memory(), atOnce[i].memory())
			}
			trained := 0
			for _, q := range small[0].model.Params().List() {
				if small[0].model.Learnable(q.Name) {
					trained += q.Len()
				}
			}
			sum := 0
			for _, n := range groups[0].begun {
				sum += n
			}
			if sum != 3*trained || len(groups[0].begun) < 3*6 || !slices.Equal(groups[0].begun, groups[1].begun) {
				t.Errorf("%d values in 3 steps, want %d each; sums of %v and %v", sum, trained, groups[0].begun, groups[1].begun)
			}
			if small[0].sums.model == nil {
				t.Error("nothing is begun before the end: the test shows nothing")
			}
		})
	}
}

// TestChangedGradientsWait: those of SwAV's prototypes are changed after the backward pass.
func TestChangedGradientsWait(t *testing.T) {
	for system, waits := range map[string]bool{"moco": false, "swav": true} {
		s := check.Get(trySmall(t, 0, 0, viewsSets(system)...))(t)
		sums := newSums(parallel.Single{}, s.model, s.model.Params().Grads(), s.model.Params().Grads(), nil, 100)
		if (sums.model == nil) != waits || (s.pairs().GradientOrder() == nil) != waits {
			t.Errorf("%s: sums wait for the end: %v, want %v", system, sums.model == nil, waits)
		}
	}
}
