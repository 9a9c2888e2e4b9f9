package run

import (
	"cmp"
	"fmt"
	"slices"

	pages "github.com/geoalign/geoalign/report"
)

// mostMistakes is the number of rows of the table of mistakes.
const mostMistakes = 20

// ExamplesPage implements Pictured: questions of all kinds in turn, so that a page shows each.
func (s Answered) ExamplesPage() (pages.ExamplesPage, error) {
	p := pages.ExamplesPage{Tables: []pages.Table{s.mistakes()}}
	for i, k := range s.Kinds {
		p.Kinds = append(p.Kinds, pages.KindAccuracy{Kind: k.Kind, Number: k.Examples, Accuracy: k.Accuracy, Baseline: s.KindBest[i]})
	}
	shown := map[[2]string]int{} // of a kind, right or wrong
	each := max(1, mostShown/max(1, len(s.Kinds)))
	for i, right := range s.Right {
		if right < 0 {
			continue
		}
		list, e := &p.Wrong, s.Examples.Example(i)
		if right >= .5 {
			list = &p.Right
		}
		key := [2]string{e.Kind, fmt.Sprint(right >= .5)}
		if shown[key] == each || len(*list) == mostShown {
			continue
		}
		shown[key]++
		card, err := s.card(i)
		if err != nil {
			return p, err
		}
		*list = append(*list, card)
	}
	return p, nil
}

// card shows question i.
func (s Answered) card(i int) (pages.Example, error) {
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
	return pages.Example{
		Name: s.Examples.PictureName(i, 0), Kind: e.Kind, Text: e.Text, Answer: s.Said[i], Truth: truth, Right: s.Right[i] >= .5,
		Pictures: []pages.Picture{picture},
	}, nil
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
