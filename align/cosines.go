package align

import (
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// MeanCosines returns the mean product of mapped pairs, and that of each image with the text of
// another pair, over at most most pairs, evenly spaced.
func MeanCosines(e *compute.Engine, m Map, p Pairs, most int) (paired, shuffled float64, err error) {
	p = p.Select(spread(p.Len(), most))
	var mapped [2][]float32
	for _, s := range []Side{Image, Text} {
		rows, err := readAll(e, s, p.Of(s))
		if err != nil {
			return 0, 0, err
		}
		if mapped[s], err = m.Apply(e, s, rows); err != nil {
			return 0, 0, err
		}
	}
	n, c := p.Len(), m.Width()
	for i := range n {
		image := mapped[Image][i*c:][:c]
		paired += float64(vector.Dot(image, mapped[Text][i*c:][:c])) / float64(n)
		shuffled += float64(vector.Dot(image, mapped[Text][(i+n/2)%n*c:][:c])) / float64(n)
	}
	return paired, shuffled, nil
}
