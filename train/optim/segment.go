package optim

import (
	"cmp"
	"fmt"
	"math"
	"path"
)

// Segment is one parameter tensor inside the slabs.
type Segment struct {
	Name        string
	Offset, Len int     // in elements
	Decay       bool    // weight decay applies
	Rate        float64 // times the learning rate, and so the decay; 0: 1
	Pull        Pull    // of a learned metric

	Shape  []int // in a checkpoint; nil: (Len), or no axis for one element
	Frozen bool  // never touched; a checkpoint holds its moments, which are zero
}

// Decays reports whether weight decay applies to the parameter name with the given group
// and number of axes, under the no-decay groups of a configuration:
//
//   - "bias", "temperature", "metric": the group that the parameter was made with. Decay
//     would pull the weights of a learned metric to 0 and not to the identity that they
//     start from
//   - "1d": tensors of exactly one axis (a scalar is none of them, as in ALBEF's code)
//   - anything else is a pattern of path.Match; one without a slash is matched
//     against the last part of the name, any other against the whole name
//
// An error means a malformed pattern.
func Decays(groups []string, name, group string, axes int) (bool, error) {
	base := path.Base(name)
	for _, g := range groups {
		var hit bool
		switch g {
		case "bias", "temperature", "metric":
			hit = group == g
		case "1d":
			hit = axes == 1
		default:
			target := name
			if path.Base(g) == g {
				target = base
			}
			var err error
			if hit, err = path.Match(g, target); err != nil {
				return false, fmt.Errorf(
					"optimizer.no_decay: malformed pattern (got %q): use bias, 1d, temperature, metric or a glob on parameter names", g)
			}
		}
		if hit {
			return false, nil
		}
	}
	return true, nil
}

// chunkLen is the most elements that one kernel call works on: 4 slabs of 64 KiB
// stay in the second-level cache between the passes of a call.
const chunkLen = 16 * 1024

// chunk is a piece of work: elements [lo, hi) of the slabs with one decay, one rate and one pull.
type chunk struct {
	lo, hi int
	decay  bool
	rate   float32 // times the learning rate
	pull   *pull   // nil: none
}

// chunks cuts the segments into pieces, joining neighbours of equal decay and rate. The
// cut depends on the segments alone, so sums over chunks have the same bits on
// any number of threads.
func chunks(segs []Segment, size int) ([]chunk, error) {
	var runs []chunk
	end := 0
	for _, s := range segs {
		if s.Offset < end || s.Len < 0 || s.Offset+s.Len > size {
			return nil, fmt.Errorf("optim: segment %s [%d, %d) overlaps its predecessor or leaves the slab of %d elements", s.Name, s.Offset, s.Offset+s.Len, size)
		}
		end = s.Offset + s.Len
		if s.Frozen {
			continue
		}
		if s.Rate < 0 || math.IsNaN(s.Rate) || math.IsInf(s.Rate, 0) {
			return nil, fmt.Errorf("optim: segment %s: the rate is a finite number >= 0 (got %v)", s.Name, s.Rate)
		}
		run := chunk{lo: s.Offset, hi: end, decay: s.Decay, rate: float32(cmp.Or(s.Rate, 1))}
		if s.Pull != (Pull{}) {
			if s.Pull.Side < 1 || s.Len%(s.Pull.Side*s.Pull.Side) != 0 {
				return nil, fmt.Errorf("optim: segment %s: %d weights are no blocks of %d x %d", s.Name, s.Len,
					s.Pull.Side, s.Pull.Side)
			}
			run.pull = &pull{s.Pull, s.Offset}
		}
		if k := len(runs) - 1; k >= 0 && runs[k].hi == run.lo && runs[k].decay == run.decay &&
			runs[k].rate == run.rate && runs[k].pull == nil && run.pull == nil {
			runs[k].hi = end
			continue
		}
		runs = append(runs, run)
	}
	var out []chunk
	for _, r := range runs {
		for lo := r.lo; lo < r.hi; lo += chunkLen {
			c := r
			c.lo, c.hi = lo, min(lo+chunkLen, r.hi)
			out = append(out, c)
		}
	}
	return out, nil
}
