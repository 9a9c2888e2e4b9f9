package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/cause"
)

// What ranks exchange in a step besides data and gradients: before it whether one was asked to stop or has failed, and
// after the backward pass the numbers to report.

// Ranks returns the number of processes that make the steps together. With several, Step ends with
// the request to stop of any of them on all, and before the same step.
func (s *Session) Ranks() int { return s.group.Size() }

// wholeIdentities refuses shares of a batch by identities that hold a part of one, where its images are compared with
// those of the share alone: they would miss their positives, or, where they hold one alone, their negatives.
func wholeIdentities(c config.Config, ranks int) error {
	rows, images := c.Train.BatchSize/ranks, c.Data.Identities.Images
	switch {
	case ranks == 1 || images <= 1 || !c.Has(section.Identities) || c.Parallel.Contrast != config.OfOwnRank:
		return nil
	case rows == images && c.Objective.Triplet.On():
		return fmt.Errorf("train.batch_size: with parallel.contrast = %q the %d rows of a process are of one identity (data.identities.images), and its images have no negatives for objective.triplet: use a multiple of %d, or parallel.contrast = %q", config.OfOwnRank, rows, 2*images*ranks, config.OfAllRanks)
	case rows%images == 0:
		return nil
	}
	return fmt.Errorf("train.batch_size: with parallel.contrast = %q the %d rows of a process must hold whole identities of %d images (data.identities.images): use a multiple of %d, or parallel.contrast = %q", config.OfOwnRank, rows, images, images*ranks, config.OfAllRanks)
}

// meet begins a step on all ranks, or on none.
func (s *Session) meet(ctx context.Context) error {
	if s.group.Size() == 1 {
		return nil
	}
	return parallel.Agree(s.group, ctx.Err())
}

// agree makes of the numbers of this rank those of all: loss, parts and measures are means, samples are a sum and the
// wait for data is the longest. bad is the number here that is not finite, nil where all are: then, and where another
// rank has one, all leave out the update together, with an error that names the ranks.
func (s *Session) agree(step int, bad error, out *StepResult) error {
	if s.group.Size() == 1 {
		return bad
	}
	x := s.told[:0]
	if bad == nil {
		x = append(x, int32(3+len(out.Parts)))
		x = appendFloat(x, float64(out.Samples))
		x = appendFloat(x, out.DataWait.Seconds())
		x = appendFloat(x, out.Loss)
		for _, p := range out.Parts {
			x = appendFloat(x, p.Value)
		}
	} else {
		x = append(x, 0)
	}
	s.told = x
	var err error
	if s.all, err = s.group.GatherInts(s.all[:0], x); err != nil {
		return cause.Join(bad, err)
	}
	return s.merge(step, bad, out)
}

// merge sets out to what all ranks told.
func (s *Session) merge(step int, bad error, out *StepResult) error {
	for all := s.all; len(all) > 0; all = all[1+2*all[0]:] {
		if all[0] == 0 {
			return s.notFinite(step, bad)
		}
	}
	share := 1 / float64(s.group.Size())
	samples, wait := 0.0, 0.0
	out.Loss = 0
	for i := range out.Parts {
		out.Parts[i].Value = 0
	}
	for all := s.all; len(all) > 0; all = all[1+2*all[0]:] {
		if int(all[0]) != 3+len(out.Parts) {
			return fmt.Errorf("train: step %d: another rank reports %d parts of the loss, this one %d: start all with the same configuration", step, all[0]-3, len(out.Parts))
		}
		samples += floatAt(all, 0)
		wait = max(wait, floatAt(all, 1))
		out.Loss += share * floatAt(all, 2)
		for i := range out.Parts {
			out.Parts[i].Value += share * floatAt(all, 3+i)
		}
	}
	out.Samples, out.DataWait = int(samples), time.Duration(wait*float64(time.Second))
	return nil
}

// notFinite is the error of all ranks where one has met a number that is not finite: what each of these met.
func (s *Session) notFinite(step int, bad error) error {
	var own []byte
	var here *NonFiniteError
	if errors.As(bad, &here) {
		own = []byte(here.What)
	}
	all, err := s.group.GatherBytes(own)
	if err != nil {
		return cause.Join(bad, err)
	}
	var list []string
	for rank, text := range all {
		if len(text) > 0 {
			list = append(list, fmt.Sprintf("rank %d: %s", rank, text))
		}
	}
	return &NonFiniteError{Step: step, What: strings.Join(list, "; ")}
}

// appendFloat appends the bits of v.
func appendFloat(x []int32, v float64) []int32 {
	b := math.Float64bits(v)
	return append(x, int32(uint32(b)), int32(uint32(b>>32)))
}

// floatAt returns number i of what a rank told.
func floatAt(x []int32, i int) float64 {
	lo, hi := uint32(x[1+2*i]), uint32(x[2+2*i])
	return math.Float64frombits(uint64(hi)<<32 | uint64(lo))
}
