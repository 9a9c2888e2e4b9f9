package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/explain"
	pages "github.com/geoalign/geoalign/report"
)

// ExamplesPage implements Pictured: the images whose captions have the least CIDEr-D and those with the most, each with what people said.
func (s Captioned) ExamplesPage(ctx context.Context) (pages.ExamplesPage, error) {
	p := pages.ExamplesPage{Notes: append([]string{"Wrong are the captions with the least CIDEr-D, right those with the most."}, s.Heat.note()...)}
	order := make([]int, len(s.Said))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Each[a], s.Each[b]) })
	n := min(mostShown, len(order)/2)
	worst, best := order[:n], slices.Clone(order[len(order)-n:])
	slices.Reverse(best)
	maps, err := s.Heat.of(ctx, slices.Concat(worst, best))
	if err != nil {
		return p, err
	}
	for _, i := range worst {
		e, err := s.card(i, false, maps[i])
		if err != nil {
			return p, err
		}
		p.Wrong = append(p.Wrong, e)
	}
	for _, i := range best {
		e, err := s.card(i, true, maps[i])
		if err != nil {
			return p, err
		}
		p.Right = append(p.Right, e)
	}
	return p, nil
}

// card draws an image with its captions and its heat map.
func (s Captioned) card(i int, right bool, maps []explain.Map) (pages.Example, error) {
	img, err := s.Set.Image(i)
	if err != nil {
		return pages.Example{}, err
	}
	picture, err := pictureOf(img, s.Set.ImageName(i))
	if err != nil {
		return pages.Example{}, err
	}
	card := pages.Example{
		Name: s.Set.ImageName(i), Pictures: []pages.Picture{picture}, Text: fmt.Sprintf("CIDEr %.0f", s.Each[i]),
		Answer: s.Said[i], Truth: strings.Join(s.Set.Written(i), " / "), Right: right,
	}
	card.Pictures, err = s.Heat.beside(card.Pictures, maps, img)
	return card, err
}
