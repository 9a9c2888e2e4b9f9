package search

// rescore replaces the scores of hits by those of query x, of squared length lengthX. row is room
// for one.
//
// A search ranks by products that are rounded: of float32, or of codes. It keeps more hits than
// were asked for, scores them anew from the rows as they are stored, in float64, and returns the
// first. So scores depend on the two rows alone, and neither on the backend nor on what else is
// searched for.
func (p *points) rescore(x []float32, lengthX float64, t *top, row []float32) error {
	hits := t.Items()
	for i := range hits {
		h := &hits[i]
		if err := p.pool.Row(int(h.row), row); err != nil {
			return err
		}
		h.score = p.metric.score(x, row, lengthX)
	}
	return nil
}
