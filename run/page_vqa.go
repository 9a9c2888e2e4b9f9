package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/explain"
	pages "github.com/geoalign/geoalign/report"
)

// mostMistakes is the number of rows of the table of mistakes.
const mostMistakes = 20

// ExamplesPage implements Pictured: questions of all kinds in turn, so that a page shows each.
func (s Answered) ExamplesPage(ctx context.Context) (pages.ExamplesPage, error) {
	p := pages.ExamplesPage{Tables: []pages.Table{s.mistakes()}, Notes: s.Heat.note()}
	for i, k := range s.Kinds {
		p.Kinds = append(p.Kinds, pages.KindAccuracy{Kind: k.Kind, Number: k.Examples, Accuracy: k.Accuracy, Baseline: s.KindBest[i]})
	}
	rows := s.shown()
	maps, err := s.Heat.of(ctx, rows)
	if err != nil {
		return p, err
	}
	for _, i := range rows {
		card, err := s.card(i, maps[i])
		if err != nil {
			return p, err
		}
		if card.Right {
			p.Right = append(p.Right, card)
		} else {
			p.Wrong = append(p.Wrong, card)
		}
	}
	return p, nil
}

// shown are the questions of the page.
func (s Answered) shown() (rows []int) {
	all, ofKind := map[bool]int{}, map[string]int{} // by whether the answer is right
	each := max(1, mostShown/max(1, len(s.Kinds)))
	for i, accuracy := range s.Right {
		right := accuracy >= .5
		kind := fmt.Sprint(right, s.Examples.Example(i).Kind)
		if accuracy >= 0 && all[right] < mostShown && ofKind[kind] < each {
			all[right]++
			ofKind[kind]++
			rows = append(rows, i)
		}
	}
	return rows
}

// card shows question i with its heat map.
func (s Answered) card(i int, maps []explain.Map) (pages.Example, error) {
	e := s.Examples.Example(i)
	img, err := s.Examples.Picture(i, 0)
	if err != nil {
		return pages.Example{}, err
	}
	picture, err := pictureOf(img, s.Examples.PictureName(i, 0))
	if err != nil {
		return pages.Example{}, err
	}
	truth := ""
	for k, a := range e.Answers {
		if k > 0 {
			truth += ", "
		}
		if truth += a.Text; len(e.Answers) > 1 {
			truth += fmt.Sprintf(" (%.0f %%)", 100*a.Weight)
		}
	}
	card := pages.Example{
		Name: s.Examples.PictureName(i, 0), Kind: e.Kind, Text: e.Text, Answer: s.Said[i], Truth: truth, Right: s.Right[i] >= .5,
		Pictures: []pages.Picture{picture},
	}
	card.Pictures, err = s.Heat.beside(card.Pictures, maps, img)
	return card, err
}

// mistakes counts the commonest wrong answers by kind.
func (s Answered) mistakes() pages.Table {
	type mistake struct{ kind, truth, said string }
	count := map[mistake]int{}
	for i, right := range s.Right {
		if right >= 0 && right < .5 {
			e := s.Examples.Example(i)
			count[mistake{e.Kind, e.Answers[0].Text, s.Said[i]}]++
		}
	}
	list := make([]mistake, 0, len(count))
	for m := range count {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b mistake) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.kind, b.kind), cmp.Compare(a.truth, b.truth), cmp.Compare(a.said, b.said))
	})
	t := pages.Table{Head: []string{"kind", "commonest answer of people", "said", "questions"}}
	for _, m := range list[:min(len(list), mostMistakes)] {
		t.Rows = append(t.Rows, pages.Texts(m.kind, m.truth, m.said, fmt.Sprint(count[m])))
	}
	return t
}
