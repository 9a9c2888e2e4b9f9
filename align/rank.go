package align

import (
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/eval"
)

// Rank returns the ranks of pairs among each other, in both directions.
func Rank(e *compute.Engine, m Map, p Pairs) (*eval.Ranks, error) {
	if err := p.check("a ranking", 1); err != nil {
		return nil, err
	}
	var mapped [2][]float32
	for _, s := range []Side{Image, Text} {
		rows, err := readAll(e, s, p.Of(s))
		if err != nil {
			return nil, err
		}
		if mapped[s], err = m.Apply(e, s, rows); err != nil {
			return nil, err
		}
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
