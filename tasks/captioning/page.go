package captioning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/tasks"
)

// ExamplesPage implements tasks.Pictured: the images whose captions have the least CIDEr-D and those with the most,
// each with what people said.
func (s Scores) ExamplesPage(ctx context.Context) (report.ExamplesPage, error) {
	p := report.ExamplesPage{Notes: []string{"Wrong are the captions with the least CIDEr-D, right those with the most."}}
	order := make([]int, len(s.Generated))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Each[a], s.Each[b]) })
	n := min(tasks.MostShown, len(order)/2)
	worst, best := order[:n], slices.Clone(order[len(order)-n:])
	slices.Reverse(best)
	return p, s.Heat.Cards(ctx, &p, slices.Concat(worst, best), func(i int) (c tasks.Card, err error) {
		c.Example = report.Example{
			Name: s.Set.ImageName(i), Text: fmt.Sprintf("CIDEr %.0f", s.Each[i]), Answer: s.Generated[i],
			Truth: strings.Join(s.Set.Written(i), " / "), Right: slices.Contains(best, i),
		}
		img, err := s.Set.Image(i)
		c.Images, c.Names = []*transform.Image{img}, []string{c.Name}
		return c, err
	})
}
