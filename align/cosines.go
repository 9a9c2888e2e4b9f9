package align

import (
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// MeanCosines returns the mean product of mapped pairs, and that of each image with the text of
// another pair, over at most most pairs, evenly spaced. Of one pair both are its own.
func MeanCosines(e *compute.Engine, m Map, p Pairs, most int) (paired, shuffled float64, err error) {
	if err := p.check("a mean of cosines", 1); err != nil {
		return 0, 0, err
	}
	if most < 1 {
		return 0, 0, fmt.Errorf("align: a mean of cosines of at most %d pairs: want at least 1", most)
	}
	p = p.Select(spread(p.Len(), most))
	mapped, err := applyPairs(e, m, p)
	if err != nil {
		return 0, 0, err
	}
	n, c := p.Len(), m.Width()
	for i := range n {
		image := mapped[Image][i*c:][:c]
		paired += float64(vector.Dot(image, mapped[Text][i*c:][:c])) / float64(n)
		shuffled += float64(vector.Dot(image, mapped[Text][(i+n/2)%n*c:][:c])) / float64(n)
	}
	return paired, shuffled, nil
}
