package search

import (
	"fmt"
	"slices"
	"sync"

	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Index finds most of the nearest rows of a pool by looking at some cells of it. Many goroutines
// may search it at once.
//
// The rows are divided into C cells by k-means. Of each it holds the codes of its difference from
// the centre of its cell, a byte a number, with the cell's rows one after another. A search looks
// at the cells whose centres are nearest, scores their rows by codes, keeps the best, and scores
// these anew from the pool.
type Index struct {
	points
	header header
	width  int // W

	centres []float32      // (C, D)
	starts  []int32        // (C+1) of the rows of each cell
	rows    []int32        // (N) of the pool, by cell, rising within one
	scales  []float32      // (N) of the codes
	half    []float32      // (N) half the squared lengths of the points of l2, else empty
	codes   []int8         // (N, W), none of an index of bits
	bits    []uint8        // (N, bitWidth) of an index of bits, see rotation
	sums    []identity.Sum // (blocks) of the rows of the pool, see eachBlock

	// Made of the centres, since all of them are looked at.
	coarse coarse
	turn   *rotation // of an index of bits
	finder sync.Pool
	close  func() error
}

// coarse is the codes of the centres.
type coarse struct {
	codes  []int8    // (C, W)
	scales []float32 // (C)
	half   []float32 // (C) half the squared lengths, 0 for inner products
}

// Point is what a search of an index finds at an effort.
type Point struct {
	Probes int     `json:"probes"` // cells that are looked at
	Recall float64 `json:"recall"` // share of the nearest rows that are found
}

// Stats describe an index.
type Stats struct {
	Rows, Width int
	Metric      Metric
	Codes       Codes
	Cells       int
	Probes      int     // cells that a search looks at, unless Options.Recall says otherwise
	Recall      float64 // that was measured then
	K, Queries  int     // of the measurement: neighbours of so many queries
	Bytes       int64   // in memory or in its file
	Curve       []Point // recalls that were measured, by rising effort
	Fingerprint string  // of all rows of the pool, the same for an exact copy in another format
}

// Stats returns the index's sizes and recalls.
func (x *Index) Stats() Stats {
	h := &x.header
	codes := Bytes
	if h.bits() {
		codes = Bits
	}
	return Stats{
		Codes: codes, Rows: h.Rows, Width: h.Width, Metric: h.Metric, Cells: h.Cells, Probes: h.Probes,
		Recall: x.Recall(), K: h.K, Queries: h.Queries,
		Bytes: int64(len(x.codes)+len(x.bits)) +
			4*int64(len(x.centres)+len(x.starts)+len(x.rows)+len(x.scales)+len(x.half)),
		Curve: slices.Clone(h.Curve), Fingerprint: h.Fingerprint,
	}
}

// Recall returns the share of the nearest rows that a search finds, as it was measured against
// Exact when the index was built. It holds for queries like those of the measurement.
func (x *Index) Recall() float64 {
	for _, p := range x.header.Curve {
		if p.Probes == x.header.Probes {
			return p.Recall
		}
	}
	return 0
}

// probes returns the cells that a search for a recall looks at.
func (x *Index) probes(recall float64) (int, error) {
	switch curve := x.header.Curve; {
	case recall == 0:
		return x.header.Probes, nil
	case !(recall > 0 && recall <= 1):
		return 0, fmt.Errorf("search: recall must be above 0 and at most 1 (got %v)", recall)
	default:
		for _, p := range curve {
			if p.Recall >= recall {
				return p.Probes, nil
			}
		}
	}
	return x.header.Cells, nil
}

// Close gives the index's file back. The index must not be used afterwards, but may be closed again.
func (x *Index) Close() error {
	if x.close == nil {
		return nil
	}
	return x.close()
}

// setCoarse codes the centres.
func (x *Index) setCoarse() {
	d, c := x.header.Width, &x.coarse
	c.codes, c.scales, c.half = make([]int8, x.header.Cells*x.width), make([]float32, x.header.Cells),
		make([]float32, x.header.Cells)
	for i := range x.header.Cells {
		centre := x.centres[i*d : (i+1)*d]
		c.scales[i] = code(c.codes[i*x.width:(i+1)*x.width], centre)
		if x.metric != Inner {
			c.half[i] = float32(vector.SumSq(centre) / 2)
		}
	}
	if x.header.bits() {
		x.turn = newRotation(x.header.Seed, d)
	}
	x.finder.New = func() any { return x.newFinder() }
}

// cell returns the places of the rows of a cell.
func (x *Index) cell(c int32) (lo, hi int) { return int(x.starts[c]), int(x.starts[c+1]) }
