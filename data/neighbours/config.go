package neighbours

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/internal/topk"
	"github.com/geoalign/geoalign/ops/geometric"
)

// Config says which rows of its side's pool a training sample has with it: K drawn from the M
// nearest ones, without replacement.
type Config struct {
	K int // rows of a sample, the anchor among them if it is one; 0: none
	// M, the nearest rows of the pool that they are drawn from; the anchor is not one. Fewer where the pool has not as
	// many
	Near     int
	Sampling string // geometric.Closest, Uniform, or Biased: nearer ones are likelier
	Anchor   bool   // the sample's own row is the first of the K
}

// drawn returns how many of the K are drawn.
func (c Config) drawn() int {
	if c.Anchor {
		return c.K - 1
	}
	return c.K
}

// check refuses what cannot be drawn.
func (c Config) check() error {
	switch {
	case c.drawn() < 1:
		return fmt.Errorf("neighbours: a neighbourhood must have a row beside the anchor (got K = %d)", c.K)
	case c.Near < c.drawn():
		return fmt.Errorf("neighbours: %d neighbours cannot be drawn from the %d nearest", c.drawn(), c.Near)
	}
	return geometric.CheckSampling(c.Sampling)
}

// ranked is a neighbour in a draw.
type ranked struct {
	key  float64
	rank int32
}

// Before says whether the neighbour is drawn before another.
func (r ranked) Before(o ranked) bool {
	if r.key != o.key {
		return r.key > o.key
	}
	return r.rank < o.rank
}

// sample draws dst from near, the nearest first, by the random numbers of a sample.
func (c Config) sample(seed, counter uint64, side string, near, dst []int32) {
	if c.Sampling == geometric.Closest {
		copy(dst, near)
		return
	}
	r := rng.New(seed, rng.Neighbours+"/"+side, counter)
	drawn := topk.New[ranked](len(dst))
	for rank := range near {
		u := (float32(r.Uint32()>>9) + 0.5) / (1 << 23) // in (0, 1), exactly
		drawn.Add(ranked{geometric.SampleKey(c.Sampling, rank, u), int32(rank)})
	}
	for i, x := range drawn.Sorted() {
		dst[i] = near[x.rank]
	}
}
