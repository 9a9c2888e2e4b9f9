package align

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/eval"
)

// Rank returns the ranks of pairs among each other, in both directions.
func Rank(e *compute.Engine, m Map, p Pairs) (*eval.Ranks, error) {
	if err := p.check("a ranking", 1); err != nil {
		return nil, err
	}
	mapped, err := applyPairs(e, m, p)
	if err != nil {
		return nil, err
	}
	n, c := p.Len(), m.Width()
	own := make([]int, n) // row i of one side belongs to row i of the other
	for i := range own {
		own[i] = i
	}
	pairs, err := eval.NewCorrespondence(own, own)
	if err != nil {
		return nil, err
	}
	return eval.Rank(pairs, 256, func(row, k int, dst []float32) error {
		e.Gemm(false, true, k, n, c, 1, mapped[Image][row*c:], c, mapped[Text], c, 0, dst, n)
		return nil
	})
}

// applyPairs maps the rows of both sides, (N, C).
func applyPairs(e *compute.Engine, m Map, p Pairs) (mapped [2][]float32, err error) {
	for _, s := range []Side{Image, Text} {
		r := p.Of(s)
		if want := m.RowWidth(s); want > 0 && r.Width() != want { // Apply tells of a map that is not fitted
			return mapped, fmt.Errorf("align: rows of the %ss have %d numbers, the map takes %d: give features of the encoder that the map was fitted to", s, r.Width(), want)
		}
		rows, err := readAll(e, s, r)
		if err != nil {
			return mapped, err
		}
		if mapped[s], err = m.Apply(e, s, rows); err != nil {
			return mapped, err
		}
	}
	return mapped, nil
}
